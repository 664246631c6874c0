/** `restart` and `restart_workers`: new processes, and no tasks. */
import { YardmasterError } from '../../../../core/api/index.ts';
import type { DaskContext, DaskWorker, Fields, RpcTable } from '../../context.ts';
import { PythonException } from '../py-errors.ts';
import { durationMs } from '../../graph/unpacked.ts';
import { pauseMs, workersIn } from './calls.ts';

export const RESTART: RpcTable = {
  restart: async (request, context) => {
    context.plugin.enqueue({ op: 'restart' });
    await restartWorkers(context, [...context.workers.values()], optionsOf(request));
    return null;
  },
  restart_workers: (request, context) => {
    const workers = workersIn(context, request['workers']) ?? [...context.workers.values()];
    return restartWorkers(context, workers, optionsOf(request));
  },
};

interface RestartOptions {
  readonly timeoutMs: number;
  /** Wait until as many workers are there as before. */
  readonly wait: boolean;
  readonly raises: boolean;
}

/** Milliseconds between two checks for workers that are back. */
const LOOK_MS = 100;

function optionsOf(request: Fields): RestartOptions {
  const { timeout } = request;
  return {
    timeoutMs: timeout === undefined || timeout === null ? 30_000 : durationMs(timeout),
    wait: request['wait_for_workers'] !== false,
    raises: request['on_error'] !== 'return',
  };
}

/** What became of each, by address: `OK`, `removed`, `timed out`, or what the nanny failed with. */
async function restartWorkers(
  context: DaskContext,
  workers: readonly DaskWorker[],
  { timeoutMs, wait, raises }: RestartOptions,
): Promise<Map<string, string>> {
  const countBefore = context.workers.size;
  const deadlineMs = context.clock.nowMs() + timeoutMs;
  const outcome = new Map<string, string>();
  const nannied = workers.filter(({ nanny }) => nanny !== undefined);
  const others = workers.filter(({ nanny }) => nanny === undefined);
  for (const { address } of others) {
    context.plugin.enqueue({ op: 'remove-worker', worker: address, expected: true, close: true });
    outcome.set(address, 'removed');
  }
  await Promise.all(
    nannied.map(async (worker) => {
      outcome.set(worker.address, await kill(context, worker, timeoutMs));
    }),
  );
  const bad = [...outcome]
    .filter(([, what]) => what !== 'OK' && what !== 'removed')
    .map(([address]) => address);
  for (const worker of bad) {
    context.plugin.enqueue({ op: 'remove-worker', worker, expected: true, close: true });
  }
  if (bad.length > 0 && raises) {
    throw new PythonException(
      'TimeoutError',
      `${bad.length}/${nannied.length} nanny worker(s) did not shut down within ${timeoutMs / 1000}s: ${bad.map((address) => `${address} ${outcome.get(address)}`).join(', ')}`,
    );
  }
  await gone(context, workers, deadlineMs);
  if (wait)
    await back(context, { countBefore, deadlineMs, timeoutMs, raises, others: others.length });
  return outcome;
}

/** What the nanny says to ending the process of its worker; it starts the next one by itself. */
async function kill(context: DaskContext, worker: DaskWorker, timeoutMs: number): Promise<string> {
  try {
    const parameters = { reason: 'scheduler-restart', timeout: timeoutMs / 1000 };
    await context.pool.call(String(worker.nanny), 'kill', parameters, { timeoutMs });
    return 'OK';
  } catch (error) {
    context.log.warn({ err: error, worker: worker.address }, 'a worker could not be restarted');
    return YardmasterError.is(error, 'ERR_TIMEOUT') ? 'timed out' : (error as Error).message;
  }
}

/** The old ones leave when their connections end. */
async function gone(
  context: DaskContext,
  workers: readonly DaskWorker[],
  deadlineMs: number,
): Promise<void> {
  while (workers.some((worker) => context.workers.get(worker.address) === worker)) {
    if (context.clock.nowMs() >= deadlineMs) return;
    await pauseMs(context, LOOK_MS);
  }
}

interface Awaited {
  readonly countBefore: number;
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly raises: boolean;
  /** Workers without a nanny that would restart them. */
  readonly others: number;
}

async function back(context: DaskContext, awaited: Awaited): Promise<void> {
  const { countBefore, deadlineMs, timeoutMs, raises, others } = awaited;
  while (context.workers.size < countBefore) {
    if (context.clock.nowMs() >= deadlineMs) {
      if (!raises) return;
      const hint =
        others === 0
          ? ''
          : ` The ${others} worker(s) not using Nannies were just shut down instead of restarted (restart is only possible with Nannies).`;
      throw new PythonException(
        'TimeoutError',
        `Waited for ${countBefore} worker(s) to reconnect after restarting, but after ${timeoutMs / 1000}s, only ${context.workers.size} have returned. Consider a longer timeout, or \`wait_for_workers=False\`.${hint}`,
      );
    }
    await pauseMs(context, LOOK_MS);
  }
}
