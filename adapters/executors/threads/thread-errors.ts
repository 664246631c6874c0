/** Which run is the cause when a thread ends, and what runs fail with then. */
import { type ExecutionResult, YardmasterError } from '../../../core/api/index.ts';
import { describeFailure } from '../../tasks/index.ts';
import type { Job } from './task-thread.ts';

/** The result of a run when the executor closes. */
export function closedResult(key: string): ExecutionResult {
  return failed(closedError(key));
}

export function closedError(key: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `the executor closed before "${key}" was done`, { key });
}

export function failed(error: unknown): ExecutionResult {
  return { kind: 'failure', error: describeFailure(error) };
}

/** A cancelled run that did not end, and whose thread others use. */
export function abandonedError({ key, graceMs }: Job): YardmasterError {
  return new YardmasterError(
    'ERR_CANCELLED',
    `"${key}" was aborted and continued for ${graceMs} ms, so its result is not awaited any more; check currentTask().signal in it`,
    { key },
  );
}

/**
 * The death of a thread.
 * @param job - that was the cause; undefined: none was running, or the cause is not known
 * @param others - runs that were parked there, when the cause is not known
 */
export function deathError(
  exitCode: number,
  uncaught: unknown,
  job: Job | undefined,
  others: readonly Job[] = [],
): YardmasterError {
  const data = { exitCode, ...(job === undefined ? {} : { key: job.key }) };
  const who = threadOf(job, others);
  if (job?.isKilled === true) {
    const message = `${who} was ended: the task was aborted and continued for ${job.graceMs} ms; check currentTask().signal in it`;
    return new YardmasterError('ERR_CANCELLED', message, data);
  }
  if (uncaught === undefined) {
    const message = `${who} ended with exit code ${exitCode} before the task returned; tasks must not call process.exit()`;
    return new YardmasterError('ERR_TASK', message, data);
  }
  const cause = uncaught as { code?: string; message?: string };
  const why =
    cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
      ? 'ran out of memory; give threads a larger heap, or make the task smaller'
      : `died of an error that nothing caught: ${cause.message ?? typeof uncaught}`;
  return new YardmasterError('ERR_TASK', `${who} ${why}`, data, { cause: uncaught });
}

function threadOf(job: Job | undefined, others: readonly Job[]): string {
  if (job !== undefined) return `the thread of "${job.key}"`;
  if (others.length === 0) return 'an idle thread';
  const names = others.slice(0, 3).map(({ key }) => `"${key}"`);
  const more = others.length > names.length ? ` and ${others.length - names.length} more` : '';
  return `a thread on which ${names.join(', ')}${more} waited`;
}

export interface EndedThread {
  /** Runs that it had to run one after the other. */
  readonly line: readonly Job[];
  /** The number of runs that have begun. */
  readonly begunCount: number;
  /** Runs that had waited there for others. */
  readonly waiting: readonly Job[];
  /** Number of the run that the thread has named; 0: it named none. */
  readonly culprit: number;
  /** True when it was closed, or only cancelled runs were left on it. */
  readonly isOnPurpose: boolean;
}

/**
 * The run because of which a thread has ended: the one that was killed, or that the thread has named, or that alone
 * can have computed. Undefined: it is none of them, or several can be.
 */
export function causeOfDeath(ended: EndedThread): Job | undefined {
  const { line, begunCount, waiting, culprit, isOnPurpose } = ended;
  const begun = line.slice(0, begunCount);
  const known =
    [...line, ...waiting].find((job) => job.isKilled) ??
    [...begun, ...waiting].find((job) => job.number === culprit);
  const present = begun.at(-1);
  // A run whose thread is closed under it ends with that.
  if (known !== undefined || present !== undefined) return known ?? present;
  if (isOnPurpose) return undefined;
  const computing = waiting.filter((job) => job.slotState !== 'parked');
  const [only, ...others] = computing.length > 0 ? computing : waiting;
  return others.length === 0 ? only : undefined;
}
