import type { UseEntry } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { OnSchedulerLost } from '../shared/reconnect.ts';
import type { MemoryMeasure } from '../state/memory.ts';

/** What happens to a plugin whose hook throws. */
export type OnError = 'log' | 'disable' | 'crash';

export interface PluginEntry extends UseEntry {
  readonly onError: OnError;
}

/** The section `scheduler.activeMemoryManager`, checked; times in milliseconds. */
export interface AmmConfig {
  readonly start: boolean;
  /** Milliseconds. */
  readonly interval: number;
  readonly measure: MemoryMeasure;
  readonly policies: readonly UseEntry[];
}

/** The section `scheduler.rebalance`, checked. Fractions are of the memory limit of each worker. */
export interface RebalanceConfig {
  readonly measure: MemoryMeasure;
  readonly senderMin: number;
  readonly recipientMax: number;
  readonly senderRecipientGap: number;
}

/** One for each policy slot, or fewer. */
export type PerSlot<T> = Readonly<Partial<Record<SlotName, T>>>;

/** The section `scheduler.workStealing`, checked; times in milliseconds. */
export interface WorkStealingConfig {
  readonly start: boolean;
  /** Milliseconds. */
  readonly interval: number;
  /** Another way to fill the policy slot `stealing`; undefined when that is filled, or nothing was said. */
  readonly mode?: 'eager' | 'calm';
  /** Milliseconds; for `mode: calm`. */
  readonly horizon: number;
  /** Prefixes of tasks. */
  readonly spare: readonly string[];
}

/** The section `scheduler.coordination`, checked; times in milliseconds, sizes in bytes. */
export interface CoordinationConfig {
  readonly enabled: boolean;
  /** Milliseconds. */
  readonly leaseTimeout: number;
  /** Bytes. */
  readonly memoryLimit: number;
}

/** The section `scheduler`, checked and complete; times in milliseconds, sizes in bytes. */
export interface SchedulerConfig {
  readonly address: string;
  readonly transport?: UseEntry;
  readonly validate: boolean;
  readonly allowedFailures: number;
  /** Bytes per second. */
  readonly bandwidth: number;
  /** Milliseconds. */
  readonly unknownTaskDuration: number;
  /** Milliseconds by prefix. */
  readonly defaultTaskDurations: Readonly<Record<string, number>>;
  /** Milliseconds; 0: each task takes a slot. */
  readonly slotWork: number;
  /** Bytes; 0: clients fetch every result. */
  readonly sendAlong: number;
  /** Bytes. */
  readonly defaultDataSize: number;
  /** Milliseconds; Infinity: never. */
  readonly workerTtl: number;
  /** Milliseconds; Infinity: tasks wait. */
  readonly noWorkersTimeout: number;
  /** Milliseconds; Infinity: it stays. */
  readonly idleTimeout: number;
  /** Milliseconds that a client is waited for that may come back. */
  readonly clientGrace: number;
  readonly transitionLogLength: number;
  /** Events that are kept for each topic. */
  readonly eventLogLength: number;
  /** Failed tasks that are kept for people. */
  readonly erredTaskLogLength: number;
  /** Transitions after which the scheduler closes. Undefined: never. */
  readonly transitionCounterMax?: number;
  /** Decisions that are kept with their candidates; 0: none. */
  readonly decisionLogLength: number;
  readonly policies: PerSlot<UseEntry>;
  /** Policies that decide nothing and are compared with those in charge. */
  readonly shadows: PerSlot<UseEntry>;
  /** Policies that clients may name, by slot and name. */
  readonly clientPolicies: PerSlot<Readonly<Record<string, UseEntry>>>;
  readonly activeMemoryManager: AmmConfig;
  readonly rebalance: RebalanceConfig;
  /** Milliseconds after which unmanaged memory of workers counts as old. */
  readonly recentToOldTime: number;
  readonly workStealing: WorkStealingConfig;
  readonly coordination: CoordinationConfig;
  readonly plugins: readonly PluginEntry[];
  readonly preload: readonly UseEntry[];
}

/** The section `scheduling`, checked; times in milliseconds. What each does: `docs/config.md`. */
export interface SchedulingConfig {
  /** Its words are in the section `scheduler` by now. */
  readonly preset?: 'mars';
  readonly subtaskMaxRetries: number;
  /** Undefined: as `scheduler.allowedFailures` says. */
  readonly subtaskMaxReschedules?: number;
  /** Milliseconds. It is in `worker.killGrace` by now. */
  readonly subtaskCancelTimeout?: number;
  readonly enableKillSlot: boolean;
  /** A share of the memory when at most 1, else bytes. */
  readonly memQuotaSize: number;
  readonly memHardLimit: number;
}

/** The section `worker.memory`, checked. Parts of the memory limit; 0: never. */
export interface WorkerMemoryConfig {
  readonly target: number;
  readonly spill: number;
  readonly pause: number;
  readonly terminate: number;
  readonly transfer: number;
  /** A share of the memory limit when at most 1, else bytes. Undefined: tasks are not admitted by a quota. */
  readonly quota?: number;
  /** The same. Undefined: none. Of no effect without a quota. */
  readonly hardLimit?: number;
  /** Bytes; Infinity: no such limit. */
  readonly maxSpill: number;
  /** Undefined: the folder of the system for temporary files. */
  readonly spillFolder?: string;
  /** Milliseconds. */
  readonly monitorInterval: number;
}

/** The section `worker`, checked; sizes in bytes. */
export interface WorkerConfig {
  /** Undefined: as many as the machine has processors. */
  readonly threads?: number;
  readonly resources: Readonly<Record<string, number>>;
  /** Bytes; 0: unlimited. */
  readonly memoryLimit: number;
  readonly memory: WorkerMemoryConfig;
  /** `quota` has become `memory.quota` and `memory.hardLimit`. */
  readonly memoryAdmission: 'thresholds' | 'quota';
  readonly ready: 'priority' | 'lifo';
  /** Milliseconds that an aborted task may continue; Infinity: without limit. */
  readonly killGrace: number;
  /** Whether another process takes the place of one that died. */
  readonly nanny: boolean;
  /** Milliseconds; Infinity: a silent process is left alone. */
  readonly stuckAfter: number;
  /** Milliseconds for giving away results before the worker closes. */
  readonly retireTimeout: number;
  readonly onSchedulerLost: OnSchedulerLost;
  /** Milliseconds; Infinity: it tries for ever. */
  readonly reconnectTimeout: number;
  /** Milliseconds; Infinity: it has no end. */
  readonly lifetime: number;
  /** Milliseconds by which it may be shorter or longer. */
  readonly lifetimeStagger: number;
  /** Whether the nanny starts another process in its place. */
  readonly lifetimeRestart: boolean;
  readonly plugins: readonly PluginEntry[];
  readonly preload: readonly UseEntry[];
  readonly nannyPlugins: readonly PluginEntry[];
  readonly nannyPreload: readonly UseEntry[];
}

/** A configuration after it was checked: complete, frozen, times in milliseconds, sizes in bytes. */
export interface Config {
  readonly scheduler: SchedulerConfig;
  readonly scheduling: SchedulingConfig;
  readonly worker: WorkerConfig;
}

/** A time as people write it: `"2s"`, `"100 ms"`, `"inf"`; a number is seconds. */
export type DurationInput = string | number;
/** A size as people write it: `"64 MiB"`, `"50MB"`; a number is bytes. */
export type BytesInput = string | number;
/** A name, path or package; in code also the thing itself, or both with options. */
export type ExtensionInput =
  | string
  | object
  | { readonly use: unknown; readonly options?: object; readonly onError?: OnError };

/** A configuration as it is written; everything has a default. `docs/config.md` explains each key. */
export interface ConfigInput {
  readonly scheduler?: {
    readonly address?: string;
    readonly transport?: ExtensionInput;
    readonly validate?: boolean;
    readonly allowedFailures?: number;
    readonly bandwidth?: BytesInput;
    readonly unknownTaskDuration?: DurationInput;
    readonly defaultTaskDurations?: Readonly<Record<string, DurationInput>>;
    readonly slotWork?: DurationInput;
    readonly sendAlong?: BytesInput;
    readonly defaultDataSize?: BytesInput;
    readonly workerTtl?: DurationInput | null;
    readonly noWorkersTimeout?: DurationInput | null;
    readonly idleTimeout?: DurationInput | null;
    readonly clientGrace?: DurationInput;
    readonly transitionLogLength?: number;
    readonly eventLogLength?: number;
    readonly erredTaskLogLength?: number;
    readonly transitionCounterMax?: number;
    readonly decisionLogLength?: number;
    readonly policies?: PerSlot<ExtensionInput>;
    readonly shadows?: PerSlot<ExtensionInput>;
    readonly clientPolicies?: PerSlot<Readonly<Record<string, ExtensionInput>>>;
    readonly activeMemoryManager?: {
      readonly start?: boolean;
      readonly interval?: DurationInput;
      readonly measure?: MemoryMeasure;
      readonly policies?: readonly ExtensionInput[];
    };
    readonly rebalance?: Partial<RebalanceConfig>;
    readonly recentToOldTime?: DurationInput;
    readonly workStealing?: {
      readonly start?: boolean;
      readonly interval?: DurationInput;
      readonly mode?: 'eager' | 'calm';
      readonly horizon?: DurationInput;
      readonly spare?: readonly string[];
    };
    readonly coordination?: {
      readonly enabled?: boolean;
      readonly leaseTimeout?: DurationInput;
      readonly memoryLimit?: BytesInput;
    };
    readonly plugins?: readonly ExtensionInput[];
    readonly preload?: readonly ExtensionInput[];
  };
  /** Mars' spelling of the keys (`mem_quota_size`) is for files. */
  readonly scheduling?:
    | 'mars'
    | {
        readonly preset?: 'mars';
        readonly subtaskMaxRetries?: number;
        readonly subtaskMaxReschedules?: number;
        readonly subtaskCancelTimeout?: DurationInput;
        readonly enableKillSlot?: boolean;
        readonly memQuotaSize?: BytesInput;
        readonly memHardLimit?: BytesInput;
      };
  readonly worker?: {
    readonly threads?: number;
    readonly resources?: Readonly<Record<string, number>>;
    readonly memoryLimit?: BytesInput;
    readonly memory?: {
      readonly target?: number | false;
      readonly spill?: number | false;
      readonly pause?: number | false;
      readonly terminate?: number | false;
      readonly transfer?: number | false;
      readonly quota?: BytesInput;
      readonly hardLimit?: BytesInput;
      readonly maxSpill?: BytesInput | false | null;
      readonly spillFolder?: string;
      readonly monitorInterval?: DurationInput;
    };
    readonly memoryAdmission?: 'thresholds' | 'quota';
    readonly ready?: 'priority' | 'lifo';
    readonly killGrace?: DurationInput | null;
    readonly nanny?: boolean;
    readonly stuckAfter?: DurationInput | null;
    readonly retireTimeout?: DurationInput;
    readonly onSchedulerLost?: OnSchedulerLost;
    readonly reconnectTimeout?: DurationInput | null;
    readonly lifetime?: DurationInput | null;
    readonly lifetimeStagger?: DurationInput;
    readonly lifetimeRestart?: boolean;
    readonly plugins?: readonly ExtensionInput[];
    readonly preload?: readonly ExtensionInput[];
    readonly nannyPlugins?: readonly ExtensionInput[];
    readonly nannyPreload?: readonly ExtensionInput[];
  };
}

/** Types a configuration that is written as a module. Returns what it is given. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
