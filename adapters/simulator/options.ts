import type { Logger } from '../../core/api/index.ts';
import type { Config } from '../../core/config/types.ts';
import type { ConfigInput } from '../app/config.ts';
import type { KernelOptions, KernelPorts } from '../../core/kernel/ports.ts';
import type { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { KernelLog } from '../../core/log/recording-kernel.ts';
import {
  check,
  checkCall,
  DURATION,
  either,
  FIELDS,
  FLAG,
  FUNCTION,
  LIST,
  LOG,
  oneOf,
  type Problem,
  refuse,
  type Rules,
  type Schema,
  SIZE,
  TEXT,
  wholeNumber,
} from '../../core/shared/schema.ts';
import type { KnownPrefix } from '../../core/state/groups.ts';
import type { Fault, RunOptions } from './simulated-cluster.ts';

/** One simulated worker. */
export interface WorkerModel {
  /** Tasks that it runs at once. Default 1. */
  readonly threads?: number;
  /** Bytes; 0, the default: unlimited. Then nothing is spilled. */
  readonly memoryLimitBytes?: number;
  /** A worker of speed 2 computes in half of the time. Default 1. */
  readonly speed?: number;
  /** Bytes per second of its link, in each direction. Default: that of the network. */
  readonly bandwidth?: number;
  /** Amounts that tasks may occupy. Default none. */
  readonly resources?: Readonly<Record<string, number>>;
}

/** The model of the network: results between workers, and messages between all. */
export interface NetworkModel {
  /** Bytes per second of the link of each worker, in each direction. Default 125 MB/s (1 Gbit/s). */
  readonly bandwidth: number;
  /** Bytes per second of all transfers together. Default Infinity. */
  readonly backbone: number;
  /** Milliseconds for each message, and before the first byte of a transfer. Default 0.5. */
  readonly latencyMs: number;
  /** Milliseconds by which a message is later at most, drawn for each. Default 0. */
  readonly jitterMs: number;
  /** Milliseconds that a message waits at each link that transfers fill, as in the buffer of a switch. Default 0. */
  readonly queueMs: number;
  /**
   * `max-min`: transfers share links so that none can be faster without making a slower one slower. `none`: each
   * transfer has the whole link, which is faster to simulate. Default `max-min`.
   */
  readonly sharing: 'max-min' | 'none';
}

/** The model of the durations of tasks. */
export interface DurationModel {
  /** Standard deviation of the logarithm of a factor that is drawn for each run. Default 0: as the workload says. */
  readonly spread: number;
  /** The same for the speed of each worker. Default 0: all are equally fast. */
  readonly speedSpread: number;
  /** Milliseconds that a worker needs for each task besides. Default 0. */
  readonly overheadMs: number;
  /** Milliseconds that the scheduler is busy with each message. Default 0. */
  readonly schedulerMs: number;
}

/** Values of tasks, to check results: the same inputs give the same number. */
export type Evaluate = (key: string, inputs: readonly number[]) => number;

/** The outcome of a run, by its key and the number of runs of this key before. */
export type Outcome = (key: string, attempt: number) => 'success' | 'failure' | 'reschedule';

/** The options of a simulation. Everything has a default. */
export interface SimulationOptions {
  /** The number of workers, or the workers. Default 4. */
  readonly workers?: number | readonly WorkerModel[];
  /** The model of the workers, where `workers` is a number or leaves it open. */
  readonly worker?: WorkerModel;
  /** The configuration of scheduler and workers, or the path of its file. Default: all defaults. */
  readonly config?: ConfigInput | string;
  /** Above the configuration: these win, key by key. */
  readonly overrides?: ConfigInput;
  /** All that is drawn depends on it. Default 1. */
  readonly seed?: number;
  readonly network?: Partial<NetworkModel>;
  readonly durations?: Partial<DurationModel>;
  /** Milliseconds between two heartbeats of a worker; Infinity: none. Default: as in production, by the number of workers. */
  readonly heartbeatMs?: number;
  /** Bytes per second that spilled results are written and read with. Default 500 MB/s. */
  readonly diskBandwidth?: number;
  /** The findings of earlier runs, as the file `scheduler.knowledge` of a configuration has them. Default: none. */
  readonly knowledge?: readonly KnownPrefix[];
  readonly faults?: readonly Fault[];
  /** Check every invariant of scheduler and workers after each event; slow. Default false. */
  readonly validate?: boolean;
  /** Default: warnings and errors are kept in `Simulation.logged`. */
  readonly log?: Logger;
  readonly evaluate?: Evaluate;
  readonly outcome?: Outcome;
  /** Receives what the kernel is handed, in order; with a writer of recordings the run can be replayed. */
  readonly kernelLog?: (config: Config) => KernelLog;
  /** Makes the kernel in the place of the usual one. */
  readonly makeKernel?: MakeKernel;
}

export type MakeKernel = (
  options: Partial<KernelOptions>,
  ports: KernelPorts,
  nowMs: number,
) => SchedulerKernel;

export const DEFAULT_WORKERS = 4;
export const DEFAULT_DISK_BANDWIDTH = 500e6;

export const DEFAULT_NETWORK: NetworkModel = {
  bandwidth: 125e6,
  backbone: Infinity,
  latencyMs: 0.5,
  jitterMs: 0,
  queueMs: 0,
  sharing: 'max-min',
};

export const DEFAULT_DURATIONS: DurationModel = {
  spread: 0,
  speedSpread: 0,
  overheadMs: 0,
  schedulerMs: 0,
};

const POSITIVE: Schema = { type: 'number', exclusiveMinimum: 0 };
const AMOUNT: Schema = { type: 'number', minimum: 0, maximum: Number.MAX_VALUE };
const WORKER: Rules<WorkerModel> = {
  ...{ threads: wholeNumber(1), memoryLimitBytes: SIZE, speed: POSITIVE, bandwidth: POSITIVE },
  resources: { type: 'object', additionalProperties: AMOUNT },
};
const NETWORK: Rules<NetworkModel> = {
  ...{ bandwidth: POSITIVE, backbone: POSITIVE, sharing: oneOf('max-min', 'none') },
  ...{ latencyMs: AMOUNT, jitterMs: AMOUNT, queueMs: AMOUNT },
};
const DURATIONS: Rules<DurationModel> = {
  ...{ spread: AMOUNT, speedSpread: AMOUNT, overheadMs: AMOUNT, schedulerMs: AMOUNT },
};

type Fields = Readonly<Record<string, Schema>>;

/** An object with these properties and no others. */
const exactly = (properties: Fields): Schema => ({
  ...{ type: 'object', additionalProperties: false, properties },
});

/** One kind of fault: its kind, its time, and these properties. */
const fault = (kind: Fault['kind'], required: Fields, optional: Fields = {}) => ({
  ...exactly({ kind: { const: kind }, atMs: AMOUNT, ...required, ...optional }),
  required: ['kind', 'atMs', ...Object.keys(required)],
});
const OF_WORKER = { worker: wholeNumber(0) };
const FOR_A_TIME = { ...OF_WORKER, forMs: AMOUNT };
const FAULT: Readonly<Record<Fault['kind'], Schema>> = {
  kill: fault('kill', OF_WORKER, { restartAfterMs: AMOUNT }),
  join: fault('join', {}, { threads: wholeNumber(1) }),
  pause: fault('pause', FOR_A_TIME),
  straggle: fault('straggle', { ...FOR_A_TIME, factor: POSITIVE }),
  delay: fault('delay', { ...FOR_A_TIME, byMs: AMOUNT }),
};

const SIMULATION_RULES: Rules<SimulationOptions> = {
  workers: either(wholeNumber(0), { type: 'array', items: exactly(WORKER) }),
  ...{ worker: exactly(WORKER), network: exactly(NETWORK), durations: exactly(DURATIONS) },
  ...{ config: either(TEXT, FIELDS), overrides: FIELDS, knowledge: LIST },
  ...{ seed: { type: 'integer' }, heartbeatMs: POSITIVE, diskBandwidth: POSITIVE, log: LOG },
  faults: {
    type: 'array',
    items: {
      type: 'object',
      required: ['kind'],
      properties: { kind: oneOf(...Object.keys(FAULT)) },
    },
  },
  ...{ validate: FLAG, evaluate: FUNCTION, outcome: FUNCTION, kernelLog: FUNCTION },
  makeKernel: FUNCTION,
};
export const RUN_RULES: Rules<RunOptions> = { maxMs: DURATION };

/** @throws YardmasterError `ERR_CONFIG` with every option that is unknown or out of its range */
export function checkOptions(options: SimulationOptions): void {
  checkCall('Simulation', options, SIMULATION_RULES);
  const { faults = [] } = options;
  const joining = faults.filter(({ kind }) => kind === 'join');
  const places = workerModels(options).length + joining.length;
  const problems = faults.flatMap((each, index): readonly Problem[] => {
    const at = ['faults', index];
    const found = check(FAULT[each.kind], each, at, 'code').problems;
    if (found.length > 0 || each.kind === 'join' || each.worker < places) return found;
    const message = `must be below ${places}, the number of workers (got ${each.worker})`;
    return [{ at: [...at, 'worker'], message }];
  });
  refuse('Simulation', problems, 'ERR_CONFIG', { call: 'Simulation' });
}

/** The workers that options describe. */
export function workerModels({ workers, worker = {} }: SimulationOptions): WorkerModel[] {
  if (Array.isArray(workers)) {
    return (workers as readonly WorkerModel[]).map((model) => ({ ...worker, ...model }));
  }
  const count = (workers as number | undefined) ?? DEFAULT_WORKERS;
  return Array.from({ length: count }, () => worker);
}
