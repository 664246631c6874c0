import type { YardmasterError } from '../api/errors.ts';
import { type NewStimulus, token, type Token } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers } from '../api/transport.ts';
import type { Config } from '../config/types.ts';
import { DEFAULT_KERNEL_OPTIONS, type KernelOptions } from '../kernel/ports.ts';

/** The tokens of what a scheduler is given besides collaborators, and that is no class. */
export const ON_CRASH: Token<(error: YardmasterError) => void> = token('on-crash');

export const STIMULI: Token<Stimuli> = token('stimuli');

/** A stimulus that may still lack its id. */
export type IncomingStimulus = NewStimulus & { readonly stimulusId?: string };

/** The entry of every stimulus. */
export interface Stimuli {
  /** Handles a stimulus now, after the present one, or when its client's turn comes. */
  accept(stimulus: IncomingStimulus): void;
}

/** Everything that reaches a scheduler from outside: connections, and stimuli of plugins and programs. */
export interface Ingress {
  /** @throws YardmasterError `ERR_CONNECT`, `ERR_CLOSED` */
  listen(address: string): Promise<string>;
  /** A connection within this process. */
  connectLocal(from: string, open: (connection: Connection) => ConnectionHandlers): Connection;
  /** @throws YardmasterError `ERR_PROTOCOL` when a stimulus is not of the form of its `op` */
  check(stimulus: unknown): void;
  /** Stops accepting connections: new ones are closed at once. */
  stopAccepting(): void;
  /** Stops listening, notifies the workers, and closes all connections, by force if they do not end in time. */
  close(): Promise<void>;
}

export const INGRESS: Token<Ingress> = token('ingress');

/**
 * Transitions after which a stimulus gives way to others: one to three milliseconds. The rest of its work
 * is continued with once a turn of the event loop.
 */
const SLICE_TRANSITIONS = 1000;

/** The part of a configuration that the kernel needs. */
export function kernelOptions({
  scheduler: config,
}: Pick<Config, 'scheduler'>): Omit<KernelOptions, 'refuseOversizedInputs' | 'workerOrder'> {
  const durations = Object.entries(config.defaultTaskDurations);
  return {
    validate: config.validate,
    allowedFailures: config.allowedFailures,
    avoidUsedWorkers: config.avoidUsedWorkers,
    defaultRetries: config.retries,
    bandwidth: config.bandwidth ?? DEFAULT_KERNEL_OPTIONS.bandwidth,
    isBandwidthGuessed: config.bandwidth === undefined,
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
