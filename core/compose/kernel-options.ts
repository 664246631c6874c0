import type { SchedulerConfig } from '../config/types.ts';
import type { KernelOptions } from '../kernel/options.ts';

/** The part of a configuration that the kernel is told. */
export function kernelOptions(config: SchedulerConfig): Partial<KernelOptions> {
  const durations = Object.entries(config.defaultTaskDurations);
  return {
    validate: config.validate,
    allowedFailures: config.allowedFailures,
    bandwidth: config.bandwidth,
    unknownTaskDurationS: config.unknownTaskDuration / 1000,
    defaultTaskDurationsS: new Map(durations.map(([prefix, ms]) => [prefix, ms / 1000])),
    defaultDataSize: config.defaultDataSize,
    transitionLogLength: config.transitionLogLength,
    workerTtlMs: config.workerTtl,
    noWorkersTimeoutMs: config.noWorkersTimeout,
  };
}
