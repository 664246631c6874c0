import type { ClusterView } from '../../core/api/index.ts';
import { LATENCY_S } from './cost-levels.ts';
import type { Load, Loads } from './loads.ts';
import type { Theft } from './theft.ts';
import { longestQueues, saturatedOrBusiest } from './victims.ts';

/** When stealing pays. */
export interface StealRules {
  /** A round begins. */
  begin(cluster: ClusterView): void;
  /** Whether an idle worker takes part in the round. */
  mayBegin(thief: Load): boolean;
  /** Whether a thief takes more after it has got something. */
  mayGoOn(thief: Load): boolean;
  /** The running workers from which tasks are stolen, in this order. */
  victims(cluster: ClusterView, loads: Loads): Load[];
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
export class EagerRules implements StealRules {
  /** Seconds of work for each thread of the cluster. */
  private averageS = 0;

  begin({ totalOccupancyS, totalThreads }: ClusterView): void {
    this.averageS = totalOccupancyS / totalThreads;
  }

  mayBegin(): boolean {
    return true;
  }

  mayGoOn({ taskCount, threadCount, seconds }: Load): boolean {
    return taskCount < threadCount || seconds < (threadCount * this.averageS) / 2;
  }

  victims(cluster: ClusterView, loads: Loads): Load[] {
    return saturatedOrBusiest(cluster, loads);
  }

  mayPay(victim: Load, leastS: number, computeS: number): boolean {
    // Of a worker that is asked for more than it has, all threads together are below one of them.
    if (victim.isStuck || leastS < 0) return true;
    return leastS + computeS <= victim.seconds - computeS / 2;
  }

  pays({ victim, thief, computeS, thiefTransferS, victimTransferS }: Theft): boolean {
    if (victim.isStuck) return true;
    const withoutHalfS = victim.seconds - (victimTransferS + computeS) / 2;
    return thief.seconds + thiefTransferS + computeS <= withoutHalfS;
  }
}

/**
 * Calm rules: only a worker that would run dry within the horizon steals; only when the task is done
 * earlier there by more than half of its own time; never from a worker all of whose tasks run; and
 * never back to where the task was stolen.
 */
export class CalmRules implements StealRules {
  /** @param horizonS - seconds of work per thread that are enough */
  constructor(private readonly horizonS: number) {}

  begin(): void {
    // Compares workers with each other, not with the average.
  }

  mayBegin(thief: Load): boolean {
    return this.mayGoOn(thief);
  }

  mayGoOn({ taskCount, threadCount, perThreadS }: Load): boolean {
    return taskCount < threadCount || perThreadS < this.horizonS;
  }

  victims(cluster: ClusterView, loads: Loads): Load[] {
    return longestQueues(cluster, loads);
  }

  mayPay(victim: Load, leastS: number, computeS: number): boolean {
    if (victim.isStuck) return true;
    if (victim.taskCount <= victim.threadCount) return false;
    return leastS + 1.5 * computeS + LATENCY_S <= victim.perThreadS;
  }

  pays({ task, victim, thief, computeS, thiefTransferS }: Theft): boolean {
    if (task.steal?.victim === thief.worker) return false;
    return this.mayPay(victim, thief.perThreadS + thiefTransferS, computeS);
  }
}
