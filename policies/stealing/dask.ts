import {
  type ClusterView,
  definePolicy,
  type Stealing,
  type Theft,
  type WorkerLoad,
  type WorkerView,
} from '../../core/api/index.ts';
import { type LoadOf, saturatedOrBusiest } from './victims.ts';

/**
 * Dask's rules. A task is stolen when the thief, with it, has less work than the victim, without half of
 * it; an idle worker takes part, and takes tasks until it is no longer idle.
 */
export class DaskStealing implements Stealing {
  /** Seconds of work for each thread of the cluster. */
  private averageS = 0;

  begin({ totalOccupancyS, totalThreads }: ClusterView): void {
    this.averageS = totalOccupancyS / totalThreads;
  }

  mayTake({ takenCount, taskCount, threadCount, workS }: WorkerLoad): boolean {
    // The kernel has judged that the worker is idle; only what it was given since can change that.
    if (takenCount === 0 || taskCount < threadCount) return true;
    return workS < (threadCount * this.averageS) / 2;
  }

  victims(cluster: ClusterView, loadOf: LoadOf): WorkerView[] {
    return saturatedOrBusiest(cluster, loadOf).map(({ worker }) => worker);
  }

  mayPay({ workS }: WorkerLoad, leastS: number, computeS: number): boolean {
    // Of a worker that is asked for more than it has, all threads together are below one of them.
    if (leastS < 0) return true;
    return leastS + computeS <= workS - computeS / 2;
  }

  pays({ victim, thief, computeS, thiefTransferS, victimTransferS }: Theft): boolean {
    const withoutHalfS = victim.workS - (victimTransferS + computeS) / 2;
    return thief.workS + thiefTransferS + computeS <= withoutHalfS;
  }
}

/** The default: evens out the work of all workers. */
export const dask = definePolicy('stealing', {
  name: 'dask',
  apiVersion: 1,
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => new DaskStealing(),
});
