/**
 * The types of a configuration. Its settings are stated in `core/config/schemas`: the type, unit, bounds,
 * default and description of each, once.
 */
import type { Checked, Written } from './schemas/schema-parts.ts';
import type { SCHEDULER_SCHEMA } from './schemas/scheduler-schema.ts';
import type { SCHEDULING_SCHEMA } from './schemas/scheduling-schema.ts';
import type { WORKER_SCHEMA } from './schemas/worker-schema.ts';

export type { ExtensionInput, OnError, PerSlot, PluginEntry } from './schemas/entry-schema.ts';
export type { BytesInput, DurationInput } from './schemas/schema-parts.ts';

/** The section `scheduler`, checked and complete; times in milliseconds, sizes in bytes. */
export type SchedulerConfig = Checked<typeof SCHEDULER_SCHEMA>;
/** The section `scheduler.activeMemoryManager`, checked; times in milliseconds. */
export type AmmConfig = SchedulerConfig['activeMemoryManager'];
/** The section `scheduler.rebalance`, checked. Fractions are of the memory limit of each worker. */
export type RebalanceConfig = SchedulerConfig['rebalance'];
/** The section `scheduler.workStealing`, checked; times in milliseconds. */
export type WorkStealingConfig = SchedulerConfig['workStealing'];
/** The section `scheduler.coordination`, checked; times in milliseconds, sizes in bytes. */
export type CoordinationConfig = SchedulerConfig['coordination'];
/** The section `scheduling`, checked; times in milliseconds. What each does: `docs/config.md`. */
export type SchedulingConfig = Checked<typeof SCHEDULING_SCHEMA>;
/** The section `worker`, checked; times in milliseconds, sizes in bytes. */
export type WorkerConfig = Checked<typeof WORKER_SCHEMA>;
/** The section `worker.memory`, checked. Parts of the memory limit; 0: never. */
export type WorkerMemoryConfig = WorkerConfig['memory'];

/** A configuration after it was checked: complete, frozen, times in milliseconds, sizes in bytes. */
export interface Config {
  readonly scheduler: SchedulerConfig;
  readonly scheduling: SchedulingConfig;
  readonly worker: WorkerConfig;
}

/** A configuration as it is written; everything has a default. `docs/config.md` explains each key. */
export interface ConfigInput {
  readonly scheduler?: Written<typeof SCHEDULER_SCHEMA>;
  /** Mars' spelling of the keys (`mem_quota_size`) is for files. */
  readonly scheduling?: Written<typeof SCHEDULING_SCHEMA>;
  readonly worker?: Written<typeof WORKER_SCHEMA>;
}

/** Types a configuration that is written as a module. Returns what it is given. */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
