import type { ClusterView, TaskView } from '../../core/api/index.ts';
import { LATENCY_S } from './cost-levels.ts';
import type { Load } from './loads.ts';
import type { Choice } from './thieves.ts';

/** A task, where it is, and where it could go. */
export interface Theft extends Choice {
  readonly task: TaskView;
  readonly victim: Load;
  /** Seconds that it is expected to compute. */
  readonly computeS: number;
}

/** When stealing pays. Made anew for each round. */
export interface StealRules {
  /** Whether an idle worker takes part in a round. */
  mayBegin(thief: Load): boolean;
  /** Whether a thief takes more after it has got something. */
  mayGoOn(thief: Load): boolean;
  /**
   * Whether anything that computes for so long, or longer, can be worth stealing from the victim;
   * must be true whenever {@link pays} is for such a task.
   * @param leastS - seconds until the first of the thieves would run dry
   */
  mayPay(victim: Load, leastS: number, computeS: number): boolean;
  pays(theft: Theft): boolean;
}

/**
 * Dask's rules. A task is stolen when the thief, with it, has less work than the victim, without half
 * of it; a thief goes on until it is no longer idle.
 */
export function eagerRules({ totalOccupancyS, totalThreads }: ClusterView): StealRules {
  const averageS = totalOccupancyS / totalThreads;
  return {
    mayBegin: () => true,
    mayGoOn: ({ taskCount, threadCount, seconds }) =>
      taskCount < threadCount || seconds < (threadCount * averageS) / 2,
    mayPay: (victim, leastS, computeS) =>
      victim.isStuck || leastS + computeS <= victim.seconds - computeS / 2,
    pays: ({ victim, thief, computeS, thiefTransferS, victimTransferS }) =>
      victim.isStuck ||
      thief.seconds + thiefTransferS + computeS <=
        victim.seconds - (victimTransferS + computeS) / 2,
  };
}

/**
 * Calm rules: only a worker that would run dry within the horizon steals; only when the task is done
 * earlier there by more than half of its own time; never from a worker all of whose tasks run; and
 * never back from where it was stolen.
 * @param horizonS - seconds
 */
export function calmRules({ stealOutcomes }: ClusterView, horizonS: number): StealRules {
  const wouldRunDry = ({ taskCount, threadCount, perThreadS }: Load): boolean =>
    taskCount < threadCount || perThreadS < horizonS;
  const mayPay = (victim: Load, leastS: number, computeS: number): boolean => {
    if (victim.isStuck) return true;
    if (victim.taskCount <= victim.threadCount) return false;
    return leastS + 1.5 * computeS + LATENCY_S <= victim.perThreadS;
  };
  return {
    mayBegin: wouldRunDry,
    mayGoOn: wouldRunDry,
    mayPay,
    pays: ({ task, victim, thief, computeS, thiefTransferS }) =>
      stealOutcomes.get(task) !== thief.worker &&
      mayPay(victim, thief.perThreadS + thiefTransferS, computeS),
  };
}
