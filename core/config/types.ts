import type { Checked, Written } from '../shared/settings.ts';
import type { SCHEDULER_SCHEMA, WORKER_SCHEMA } from './schema.ts';

export type { BytesInput, DurationInput, ExtensionInput } from '../shared/settings.ts';
export type { OnError, PluginEntry } from './schema.ts';

// The types of a configuration, without the sections of what is built in. Its settings are stated in
// `core/config/schema.ts`: the type, unit, bounds, default and description of each, once.

/** The section `scheduler`, checked and complete; times in milliseconds, sizes in bytes. */
export type SchedulerConfig = Checked<typeof SCHEDULER_SCHEMA>;
/** The section `worker`, checked; times in milliseconds, sizes in bytes. */
export type WorkerConfig = Checked<typeof WORKER_SCHEMA>;

/** A configuration after it was checked: complete, frozen, times in milliseconds, sizes in bytes. */
export interface Config {
  readonly scheduler: SchedulerConfig;
  readonly worker: WorkerConfig;
}

/** A configuration as it is written; everything has a default. `docs/config.md` explains each key. */
export interface ConfigInput {
  readonly scheduler?: Written<typeof SCHEDULER_SCHEMA>;
  readonly worker?: Written<typeof WORKER_SCHEMA>;
}
