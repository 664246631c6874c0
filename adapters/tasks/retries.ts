import { createHash } from 'node:crypto';
import type { Clock, RetrySpec } from '../../core/api/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { isReschedule, type RunContext } from './context.ts';
import { loadFunction } from './load-function.ts';

const NO_ARGUMENTS = new Uint8Array(0);
const systemClock = new SystemClock();

/**
 * Calls a function until it succeeds, or the rules say that it has failed. The task is parked meanwhile: its thread
 * runs others. A task that is cancelled is not called again.
 */
export async function withRetries<T>(
  call: () => Promise<T>,
  rules: RetrySpec,
  context: RunContext,
): Promise<T> {
  const { signal } = context;
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (thrown) {
      if (attempt > rules.times || signal.aborted || isReschedule(thrown)) throw thrown;
      if (!(await isWorthRetry(rules, thrown, context))) throw thrown;
      const isAborted = await parkedFor(retryDelayMs(rules, context.key, attempt), context);
      if (isAborted) throw thrown;
    }
  }
}

/** Milliseconds before the retry that follows this attempt, the first being 1. The same for the same key. */
export function retryDelayMs(
  { backoffMs, factor, jitter }: Pick<RetrySpec, 'backoffMs' | 'factor' | 'jitter'>,
  key: string,
  attempt: number,
): number {
  const fullMs = backoffMs * factor ** (attempt - 1);
  if (jitter === 0) return fullMs;
  const digest = createHash('sha256').update(`${attempt}\0${key}`).digest();
  return fullMs * (1 - (jitter * digest.readUInt32BE(0)) / 2 ** 32);
}

async function isWorthRetry(
  { retryIf }: RetrySpec,
  thrown: unknown,
  { surroundings }: RunContext,
): Promise<boolean> {
  if (retryIf === undefined) return true;
  const decide = await loadFunction({ ...retryIf, args: NO_ARGUMENTS }, surroundings);
  return (await decide(thrown as never)) === true;
}

/** Waits without the slot of the run. Returns whether the run was aborted meanwhile. */
async function parkedFor(ms: number, context: RunContext): Promise<boolean> {
  const { signal, surroundings } = context;
  const clock: Clock = surroundings?.clock ?? systemClock;
  context.park();
  await new Promise<void>((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(ms, end);
    signal.addEventListener('abort', end);
  });
  await context.rejoin();
  return signal.aborted;
}
