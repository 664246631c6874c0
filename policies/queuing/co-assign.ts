import {
  type ClusterView,
  definePolicy,
  type GroupView,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { sizeOf } from '../worker-selection/transfers.ts';
import { DEFAULT_ROOTISH_LIMITS, isRootish } from './is-rootish.ts';

/**
 * Nothing is held back; neighbours go to the same worker. Runs of root-ish tasks, as long as one
 * worker's share of the group, are sent to one worker, because they are likely to meet again in the
 * same downstream task. Dask with `worker-saturation: inf`.
 */
export const coAssign = definePolicy('queuing', {
  name: 'co-assign',
  apiVersion: 1,
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => {
    const runs = new CoAssignment();
    return {
      holdsBack: false,
      slotLimit: () => Infinity,
      isRootish: (task, cluster) => isRootish(task, cluster, DEFAULT_ROOTISH_LIMITS),
      selectRootish: (task, cluster) => runs.select(task, cluster),
      snapshot: (cluster) => runs.snapshot(cluster),
      restore: (memory, cluster) => runs.restore(memory as RunMemory, cluster),
    };
  },
});

/** Neighbours of a group that go to one worker. */
interface Run {
  readonly worker: WorkerView;
  tasksLeft: number;
}

/** Runs under way as plain data. */
export type RunMemory = readonly (readonly [group: string, worker: string, tasksLeft: number])[];

/** The runs under way, one for each group of tasks. The memory of a policy; each policy has its own. */
export class CoAssignment {
  /** Weak: a group that is forgotten before its last task was placed takes its run along. */
  private readonly runs = new WeakMap<GroupView, Run>();

  /** Takes the worker of the last neighbour, or starts a new run. Called in priority order. */
  select(task: TaskView, cluster: ClusterView): WorkerView | undefined {
    const pool = cluster.idle.size > 0 ? cluster.idle : cluster.running;
    if (pool.size === 0) return undefined;
    const { group } = task;
    const run = this.continuedRun(group, cluster) ?? this.startRun(task, pool, cluster);
    if (run === undefined) return undefined;
    run.tasksLeft--;
    // The last task of a group ends its run.
    if (group.states.released + group.states.waiting <= 1) this.runs.delete(group);
    return run.worker;
  }

  /** Begins a run at a worker, or continues one that was begun elsewhere. */
  begin(group: GroupView, worker: WorkerView, tasksLeft: number): Run {
    const run = { worker, tasksLeft };
    this.runs.set(group, run);
    return run;
  }

  /** The runs that can be continued. O(groups). */
  snapshot(cluster: ClusterView): RunMemory {
    return [...cluster.groups.values()].flatMap((group) => {
      const run = this.continuedRun(group, cluster);
      return run === undefined ? [] : [[group.name, run.worker.address, run.tasksLeft] as const];
    });
  }

  /** Takes over the runs of another policy. */
  restore(memory: RunMemory, { groups, workers }: ClusterView): void {
    for (const [name, address, tasksLeft] of memory) {
      const group = groups.get(name);
      const worker = workers.get(address);
      if (group !== undefined && worker !== undefined) this.begin(group, worker, tasksLeft);
    }
  }

  private continuedRun(group: GroupView, cluster: ClusterView): Run | undefined {
    const run = this.runs.get(group);
    if (run === undefined || run.tasksLeft === 0 || run.worker.status !== 'running') {
      return undefined;
    }
    return cluster.workers.get(run.worker.address) === run.worker ? run : undefined;
  }

  private startRun(
    task: TaskView,
    pool: Iterable<WorkerView>,
    cluster: ClusterView,
  ): Run | undefined {
    let best: WorkerView | undefined;
    let bestS = Infinity;
    for (const worker of pool) {
      const seconds = startS(task, worker, cluster);
      if (best !== undefined && seconds > bestS) continue;
      if (best !== undefined && seconds === bestS && worker.nbytes >= best.nbytes) continue;
      best = worker;
      bestS = seconds;
    }
    if (best === undefined) return undefined;
    const share = (task.group.size / cluster.totalThreads) * best.threadCount;
    return this.begin(task.group, best, Math.floor(share));
  }
}

/** Seconds to bring the inputs that the worker lacks to it. O(dependencies). */
export function transferS(task: TaskView, worker: WorkerView, cluster: ClusterView): number {
  let missingBytes = 0;
  for (const dependency of task.dependencies) {
    if (worker.hasWhat.has(dependency)) continue;
    missingBytes += sizeOf(dependency, cluster);
  }
  return missingBytes / cluster.costs.bandwidth;
}

/** Seconds until the worker could start the task: the work ahead of it, and the transfers. */
export function startS(task: TaskView, worker: WorkerView, cluster: ClusterView): number {
  return worker.occupancyS / worker.threadCount + transferS(task, worker, cluster);
}
