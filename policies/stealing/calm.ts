import {
  type ClusterView,
  definePolicy,
  type Stealing,
  type Theft,
  type WorkerLoad,
  type WorkerView,
} from '../../core/api/index.ts';
import { type LoadOf, longestQueues } from './victims.ts';

/** The cost of a move of a task besides its inputs, in seconds. */
const LATENCY_S = 0.1;

/**
 * Only a worker whose work ends within the horizon steals, and only when the task ends there
 * earlier by more than half of its duration. Tasks are never stolen from a worker all of whose
 * tasks run, and never back by the worker from which they were stolen.
 */
class CalmStealing implements Stealing {
  /** @param horizonS - seconds of work per thread that are enough */
  constructor(private readonly horizonS: number) {}

  mayTake({ taskCount, threadCount, perThreadS }: WorkerLoad): boolean {
    return taskCount < threadCount || perThreadS < this.horizonS;
  }

  victims(cluster: ClusterView, loadOf: LoadOf): WorkerView[] {
    return longestQueues(cluster, loadOf).map(({ worker }) => worker);
  }

  mayPay(
    { taskCount, threadCount, perThreadS }: WorkerLoad,
    leastS: number,
    computeS: number,
  ): boolean {
    if (taskCount <= threadCount) return false;
    return leastS + 1.5 * computeS + LATENCY_S <= perThreadS;
  }

  pays({ task, victim, thief, computeS, thiefTransferS }: Theft): boolean {
    if (task.steal?.victim === thief.worker) return false;
    return this.mayPay(victim, thief.perThreadS + thiefTransferS, computeS);
  }
}

/** Moves few tasks: only for workers that would run out of work, and never back. */
export const calm = definePolicy('stealing', {
  name: 'calm',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      horizonMs: {
        description: 'A worker steals when it has less work than this for each of its threads.',
        type: 'number',
        minimum: 0,
        default: 500,
      },
    },
  },
  create: ({ horizonMs }) => new CalmStealing(horizonMs / 1000),
});
