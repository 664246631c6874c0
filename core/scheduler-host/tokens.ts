import type { YardmasterError } from '../api/errors.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Config } from '../config/types.ts';
import type { LogBook } from '../host/log.ts';
import type { Insight } from '../kernel/insight.ts';
import type { SchedulerKernel } from '../kernel/kernel.ts';
import type { KernelOptions } from '../kernel/ports.ts';
import type { TransportTable } from '../plugin-host/transport-table.ts';
import type { ClusterState } from '../state/cluster.ts';

/** What a scheduler is given. The token of each of its own collaborators is in the file of that class. */
export const LOG_BOOK: Token<LogBook> = token('log-book');
export const ON_CRASH: Token<(error: YardmasterError) => void> = token('on-crash');
export const SERVER_ID: Token<string> = token('server-id');
export const TRANSPORTS: Token<TransportTable> = token('transports');

/** The kernel, and the parts of it that many collaborators read. */
export const KERNEL: Token<SchedulerKernel> = token('kernel');
export const CLUSTER: Token<ClusterState> = token('cluster');
export const INSIGHT: Token<Insight> = token('insight');

/**
 * Transitions after which a stimulus gives way to others: one to three milliseconds. The rest of its work
 * is continued with once a turn of the event loop.
 */
const SLICE_TRANSITIONS = 1000;

/** The part of a configuration that the kernel needs. */
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
    erredTasksMax: config.erredTaskLogLength,
    transitionCounterMax: config.transitionCounterMax ?? Infinity,
    workerTtlMs: config.workerTtl,
    noWorkersTimeoutMs: config.noWorkersTimeout,
    recentToOldMs: config.recentToOldTime,
    sliceTransitions: SLICE_TRANSITIONS,
  };
}
