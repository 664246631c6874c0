/** What the parts of a worker are made with. */
import type { WorkerIdentity } from '../state/worker.ts';
import type { WorkerKernelSettings } from '../worker/worker-kernel.ts';
import { type MemorySurroundings, WorkerMemory } from './worker-memory.ts';
import { quotaOf, transferLimit, type WorkerHostOptions } from './worker-options.ts';

/** Work that threads may have in line: enough to hide the way there and back, too little to matter. */
const SHORT_RUN_S = 0.001;

/** Of its machine. */
export function kernelSettings(
  options: WorkerHostOptions,
  identity: WorkerIdentity,
): WorkerKernelSettings {
  return {
    address: identity.address,
    threadCount: identity.threadCount,
    resources: identity.resources,
    ...(options.ready === undefined ? {} : { ready: options.ready }),
    incomingBytesMax: transferLimit(options),
    memoryQuota: quotaOf(options),
    shortRunS: options.executor.begin === undefined ? 0 : SHORT_RUN_S,
    validate: options.validate ?? false,
  };
}

/** Callbacks of its memory to the worker. */
export type MemoryEvents = Pick<
  MemorySurroundings,
  'address' | 'isIdle' | 'onMode' | 'onMeasured' | 'onLost' | 'onTooMuch'
>;

/** Its memory. */
export function memoryOf(options: WorkerHostOptions, events: MemoryEvents): WorkerMemory {
  const { memoryLimitBytes = 0, store, executor, clock, log, measureMemory } = options;
  return new WorkerMemory(
    {
      ...events,
      limitBytes: memoryLimitBytes,
      store,
      executor,
      clock,
      log,
      measure: measureMemory,
    },
    options.memory,
  );
}
