import type { Clock } from '../../core/api/index.ts';
import type { Client } from '../client/index.ts';

/** Keys of tasks by address of the worker that may be running them. */
export type RunsByWorker = ReadonlyMap<string, ReadonlySet<string>>;

/** Waits between two questions; the last one again and again. */
const DELAYS_MS = [10, 25, 50, 100, 250, 500];
/** A thread that is to be ended after a time is gone a little later. */
const MARGIN_MS = 500;

/**
 * Waits until all of these runs have ended, but not much longer than `timeoutMs`. Returns the keys
 * of the runs that continue. A run that was sent to a worker and had not begun counts as ended at
 * once, and so does a run on a worker that has left.
 */
export async function runsLeft(
  client: Client,
  clock: Clock,
  runs: RunsByWorker,
  timeoutMs: number,
): Promise<ReadonlySet<string>> {
  const deadlineMs = clock.nowMs() + timeoutMs + MARGIN_MS;
  for (let attempt = 0; ; attempt++) {
    const left = await runningOf(client, runs);
    const restMs = deadlineMs - clock.nowMs();
    if (left.size === 0 || restMs <= 0) return left;
    const delayMs = DELAYS_MS[Math.min(attempt, DELAYS_MS.length - 1)] as number;
    await new Promise<void>((resolve) => {
      clock.setTimer(Math.min(delayMs, restMs), resolve);
    });
  }
}

async function runningOf(client: Client, runs: RunsByWorker): Promise<ReadonlySet<string>> {
  if (runs.size === 0) return new Set();
  const answers = await client.command<[address: string, keys: readonly string[]][]>('executing', {
    workers: [...runs.keys()],
  });
  const running = new Map(answers.map(([address, keys]) => [address, new Set(keys)]));
  const left = new Set<string>();
  for (const [address, keys] of runs) {
    // Of a worker that does not answer the worst is believed.
    for (const key of keys) if (running.get(address)?.has(key) ?? true) left.add(key);
  }
  return left;
}
