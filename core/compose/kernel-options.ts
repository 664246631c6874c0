import type { Config } from '../config/types.ts';
import type { KernelOptions } from '../kernel/options.ts';

/** The part of a configuration that the kernel is told. */
export function kernelOptions({
  scheduler: config,
  scheduling,
}: Pick<Config, 'scheduler' | 'scheduling'>): Partial<KernelOptions> {
  const { subtaskMaxReschedules, subtaskMaxRetries } = scheduling;
  const durations = Object.entries(config.defaultTaskDurations);
  return {
    validate: config.validate,
    allowedFailures: config.allowedFailures,
    avoidUsedWorkers: subtaskMaxReschedules !== undefined,
    defaultRetries: subtaskMaxRetries,
    bandwidth: config.bandwidth,
    unknownTaskDurationS: config.unknownTaskDuration / 1000,
    defaultTaskDurationsS: new Map(durations.map(([prefix, ms]) => [prefix, ms / 1000])),
    slotWorkS: config.slotWork / 1000,
    sendAlongBytes: config.sendAlong,
    defaultDataSize: config.defaultDataSize,
    transitionLogLength: config.transitionLogLength,
    workerTtlMs: config.workerTtl,
    noWorkersTimeoutMs: config.noWorkersTimeout,
  };
}
