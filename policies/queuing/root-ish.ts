import { definePolicy } from '../../core/api/index.ts';
import { CoAssignment, type RunMemory } from './co-assign.ts';
import { DEFAULT_ROOTISH_LIMITS, isRootish } from './is-rootish.ts';

/** Schema of the option `workerSaturation`. */
export const saturationSchema = {
  description: 'Root-ish tasks per thread that a worker may have at once; inf: no limit.',
  anyOf: [{ type: 'number', exclusiveMinimum: 0 }, { const: 'inf' }],
  default: 1.1,
} as const;

/**
 * Root-ish tasks go to the least busy worker, and wait in the scheduler when every thread has one (and
 * a few spare). This keeps memory low: work that was begun is finished before more is begun.
 * Dask with a finite `worker-saturation`.
 */
export const rootish = definePolicy('queuing', {
  name: 'root-ish',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      workerSaturation: saturationSchema,
      rootishTaskgroup: {
        description: 'Root-ish groups depend on fewer groups than this.',
        type: 'integer',
        minimum: 0,
        default: DEFAULT_ROOTISH_LIMITS.dependencyGroupsMax,
      },
      rootishTaskgroupDependencies: {
        description: 'Root-ish groups depend on fewer tasks than this.',
        type: 'integer',
        minimum: 0,
        default: DEFAULT_ROOTISH_LIMITS.dependencyTasksMax,
      },
    },
  },
  create: ({
    workerSaturation,
    rootishTaskgroup: dependencyGroupsMax,
    rootishTaskgroupDependencies: dependencyTasksMax,
  }) => {
    const saturation = saturationOf(workerSaturation);
    const limits = { dependencyGroupsMax, dependencyTasksMax };
    const runs = new CoAssignment();
    return {
      runs,
      holdsBack: saturation !== Infinity,
      leavesPlacement: true,
      slotLimit: (worker) => slotLimit(saturation, worker.threadCount),
      isRootish: (task, cluster) => isRootish(task, cluster, limits),
      selectRootish: (task, cluster) =>
        saturation === Infinity || !task.isQueueable
          ? runs.select(task, cluster)
          : cluster.openSlots.peek(),
      snapshot: (cluster) => runs.snapshot(cluster),
      restore: (memory, cluster) => runs.restore(memory as RunMemory, cluster),
    };
  },
});

/** `ceil(saturation * threads)`, at least one. No epsilon: Dask has the same doubles. */
export function slotLimit(saturation: number, threadCount: number): number {
  return Math.max(Math.ceil(saturation * threadCount), 1);
}

/** The number behind the option `workerSaturation`. */
export function saturationOf(option: number | 'inf'): number {
  return option === 'inf' ? Infinity : option;
}
