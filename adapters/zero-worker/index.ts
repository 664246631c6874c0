/** Workers that finish every task at once: for measuring a scheduler alone, over the real wire. */
import type { Clock, Transport } from '../../core/api/index.ts';
import { SystemClock } from '../clocks/system-clock.ts';
import { ZeroWorker } from './zero-worker.ts';

/** Workers that compute nothing. Everything has a default. */
export interface ZeroWorkersOptions {
  /** The number of workers. Default 1. */
  readonly workers?: number;
  /** Tasks at once for each. Default 1. */
  readonly threads?: number;
  /** Bytes that they report for each result. Default 0. */
  readonly resultBytes?: number;
  /** Each is called this and a number. Default `zero`. */
  readonly name?: string;
  /** Ways to reach the scheduler besides `tcp`. */
  readonly transports?: readonly Transport[];
  readonly clock?: Clock;
  /** Milliseconds for each connection to be made and answered. Default 10 000. */
  readonly timeoutMs?: number;
}

/** Zero workers that are registered. */
export interface ZeroWorkers {
  readonly addresses: readonly string[];
  /** Tasks that they reported as finished, all together. */
  readonly finishedCount: number;
  /** Resolves when all were closed; rejects when one lost the scheduler. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Starts workers that report every task as finished as soon as it is assigned, and report every
 * replica that they are asked to fetch as fetched. They have no results: a client can wait for its
 * tasks, but cannot gather them.
 *
 * @param scheduler - address of a scheduler
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION`
 */
export async function startZeroWorkers(
  scheduler: string,
  options: ZeroWorkersOptions = {},
): Promise<ZeroWorkers> {
  const { workers: count = 1, threads = 1, resultBytes = 0, name = 'zero' } = options;
  const { clock = new SystemClock(), transports = [], timeoutMs = CONNECT_TIMEOUT_MS } = options;
  const workers: ZeroWorker[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.close()));
  };
  try {
    // One after the other: they get the same ranks in each run.
    for (let index = 0; index < count; index++) {
      const own = { name: `${name}-${index}`, threads, resultBytes, clock, transports, timeoutMs };
      workers.push(await ZeroWorker.start(scheduler, own));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const closed = Promise.all(workers.map((worker) => worker.closed)).then(() => undefined);
  closed.catch(() => undefined); // Its users handle the rejection.
  return {
    addresses: workers.map((worker) => worker.address),
    get finishedCount(): number {
      return workers.reduce((sum, worker) => sum + worker.finishedCount, 0);
    },
    closed,
    close,
  };
}
