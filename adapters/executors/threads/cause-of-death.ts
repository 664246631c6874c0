import type { Job } from './job.ts';

/** What is known of a thread that has ended. */
export interface EndedThread {
  /** Runs that it had to run one after the other. */
  readonly line: readonly Job[];
  /** How many of them have begun. */
  readonly begunCount: number;
  /** Runs that had waited there for others. */
  readonly waiting: readonly Job[];
  /** Number of the run that the thread has named; 0: it named none. */
  readonly culprit: number;
  /** Whether it was closed, or only cancelled runs were left on it. */
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
