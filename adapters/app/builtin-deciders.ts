import type { Builtins } from '../../core/api/index.ts';

/** The built-in policies and plugins that decide something, on any platform. Each is loaded when it is first used. */
export const deciders: Builtins = {
  // Policies of the kernel's slots.
  'earliest-start': async () =>
    (await import('../../policies/worker-selection/earliest-start.ts')).earliestStart,
  balanced: async () => (await import('../../policies/worker-selection/balanced.ts')).balanced,
  'locality-first': async () =>
    (await import('../../policies/worker-selection/locality-first.ts')).localityFirst,
  'root-ish': async () => (await import('../../policies/queuing/root-ish.ts')).rootish,
  'co-assign': async () => (await import('../../policies/queuing/co-assign.ts')).coAssign,
  family: async () => (await import('../../policies/queuing/family.ts')).family,
  direct: async () => (await import('../../policies/queuing/direct.ts')).direct,
  'queuing/mars': async () => (await import('../../policies/queuing/mars.ts')).mars,
  'depth-first': async () => (await import('../../policies/ordering/depth-first.ts')).depthFirst,
  // These names stand for something else, too.
  'ordering/dask': async () => (await import('../../policies/ordering/dask.ts')).daskOrder,
  mars: async () => (await import('../../policies/ordering/mars.ts')).mars,
  'ordering/fifo': async () => (await import('../../policies/ordering/fifo.ts')).fifo,
  best: async () => (await import('../../policies/ordering/best.ts')).best,
  fifo: async () => (await import('../../policies/fairness/fifo.ts')).fifo,
  'weighted-fair-share': async () =>
    (await import('../../policies/fairness/weighted-fair-share.ts')).weightedFairShare,
  'stealing/dask': async () => (await import('../../policies/stealing/dask.ts')).dask,
  calm: async () => (await import('../../policies/stealing/calm.ts')).calm,

  // Policies of the Active Memory Manager.
  'reduce-replicas': async () =>
    (await import('../../policies/amm/reduce-replicas.ts')).ReduceReplicas,
  'keep-replicas': async () => (await import('../../policies/amm/keep-replicas.ts')).KeepReplicas,
  'retire-worker': async () => (await import('../../policies/amm/retire-worker.ts')).RetireWorker,
  'distributed.active_memory_manager.ReduceReplicas': async () =>
    (await import('../../policies/amm/reduce-replicas.ts')).ReduceReplicas,
  'balance-memory': async () =>
    (await import('../../policies/amm/balance-memory.ts')).BalanceMemory,
  'ensure-broadcast': async () =>
    (await import('../../policies/amm/ensure-broadcast.ts')).EnsureBroadcast,

  // Plugins that ask them.
  amm: async () => (await import('../../plugins/active-memory-manager.ts')).default,
  'work-stealing': async () => (await import('../../plugins/work-stealing.ts')).default,
};
