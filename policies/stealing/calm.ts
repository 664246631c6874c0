import {
  type ClusterView,
  definePolicy,
  type Stealing,
  type Theft,
  type WorkerLoad,
  type WorkerView,
} from '../../core/api/index.ts';
import { askFor, transferS } from '../worker-selection/transfers.ts';
import { type LoadOf, longestQueues } from './victims.ts';

/** The price of a transfer, in times of what it takes: what was moved once is often moved again. */
const TRANSFER_PRICE = 2;
/** The cost of a move of a task besides its inputs, in seconds. */
const LATENCY_S = 0.1;

/**
 * Only a worker whose work ends within the horizon steals, and only when the task ends there
 * earlier by more than half of its duration, at the pace of both workers. Tasks are never stolen from a worker all of whose
 * tasks run, and never back by the worker from which they were stolen.
 */
class CalmStealing implements Stealing {
  /** Of the workers, as the round began. */
  private leastPace = 1;
  private cluster: ClusterView | undefined = undefined;
  /** Bytes that workers are going to be asked for because of this round. */
  private readonly asked = new Map<WorkerView, number>();

  /** @param horizonS - seconds of work per thread that are enough */
  constructor(private readonly horizonS: number) {}

  begin(cluster: ClusterView): void {
    this.cluster = cluster;
    this.asked.clear();
    this.leastPace = 1;
    for (const { pace } of cluster.running) this.leastPace = Math.min(this.leastPace, pace);
  }

  mayTake({ worker, taskCount, threadCount, perThreadS }: WorkerLoad): boolean {
    return taskCount < threadCount || perThreadS * worker.pace < this.horizonS;
  }

  victims(cluster: ClusterView, loadOf: LoadOf): WorkerView[] {
    return longestQueues(cluster, loadOf).map(({ worker }) => worker);
  }

  mayPay(load: WorkerLoad, leastS: number, computeS: number): boolean {
    const { worker, taskCount, threadCount } = load;
    if (taskCount <= threadCount) return false;
    return (leastS + 1.5 * computeS) * this.leastPace + LATENCY_S <= lastEndS(load) * worker.pace;
  }

  /** The task must end sooner by half of what it takes where that is shorter. */
  pays({ task, victim, thief, computeS }: Theft): boolean {
    if (task.steal?.victim === thief.worker || victim.taskCount <= victim.threadCount) return false;
    const cluster = this.cluster as ClusterView;
    const [here, there] = [thief.worker.pace, victim.worker.pace];
    const fetchS = TRANSFER_PRICE * transferS(task, thief.worker, cluster, this.asked);
    const endS = (thief.perThreadS + computeS) * here + fetchS + LATENCY_S;
    if (endS + 0.5 * computeS * Math.min(here, there) > lastEndS(victim) * there) return false;
    askFor(task, thief.worker, cluster, this.asked);
    return true;
  }
}

/**
 * Seconds until the last of a worker's tasks ends: its threads become free at different times, so that one waits half of
 * a duration longer than work per thread says.
 */
function lastEndS({ workS, perThreadS, taskCount, threadCount }: WorkerLoad): number {
  return perThreadS + 0.5 * (workS / taskCount) * (1 - 1 / threadCount);
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
