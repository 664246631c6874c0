import { type UseEntry, YardmasterError } from '../../core/api/index.ts';
import { loadConfigObject } from '../../core/config/load.ts';
import type { Config, ConfigInput, PluginEntry, WorkerConfig } from '../../core/config/types.ts';
import type { StartWorkerOptions } from './start-worker-options.ts';

/** The part of a configuration that workers take as it is, and what its paths are relative to. */
export interface WorkerSettings {
  readonly worker: Partial<WorkerConfig>;
  readonly folder: string;
  /** `scheduler.transport`, by which workers reach the scheduler and each other. */
  readonly transport?: UseEntry | undefined;
}

/** What a worker takes from its configuration as it is. */
export function settingsOf({ worker, folder }: WorkerSettings): Partial<StartWorkerOptions> {
  const { onSchedulerLost, reconnectTimeout, schedulerTtl, plugins, preload } = worker;
  const { lifetime, retireTimeout, allowModules } = worker;
  return {
    folder,
    ...(allowModules === undefined ? {} : { allowModules }),
    ...(onSchedulerLost === undefined ? {} : { onSchedulerLost }),
    ...(reconnectTimeout === undefined ? {} : { reconnectTimeoutMs: reconnectTimeout }),
    ...(schedulerTtl === undefined ? {} : { schedulerTtlMs: schedulerTtl }),
    ...(plugins === undefined ? {} : { plugins }),
    ...(preload === undefined ? {} : { preload }),
    ...(lifetime === undefined || !Number.isFinite(lifetime)
      ? {}
      : {
          lifetime: {
            lifetimeMs: lifetime,
            staggerMs: worker.lifetimeStagger ?? 0,
            restart: worker.lifetimeRestart ?? false,
            ...(retireTimeout === undefined ? {} : { retireMs: retireTimeout }),
          },
        }),
  };
}

/**
 * The same for a worker in a separate process, as a value of `--settings`.
 * @throws YardmasterError `ERR_CONFIG` when a plugin is given in code, which cannot travel
 */
export function settingsText(
  { worker: config, scheduler: { transport } }: Pick<Config, 'worker' | 'scheduler'>,
  folder: string,
): string {
  const worker: ConfigInput['worker'] = {
    onSchedulerLost: config.onSchedulerLost,
    reconnectTimeout: timeText(config.reconnectTimeout),
    schedulerTtl: timeText(config.schedulerTtl),
    lifetime: timeText(config.lifetime),
    lifetimeStagger: timeText(config.lifetimeStagger),
    lifetimeRestart: config.lifetimeRestart,
    retireTimeout: timeText(config.retireTimeout),
    // The program that starts a cluster runs whatever it likes.
    allowModules: config.allowModules ?? ['*'],
    ...(config.env === undefined ? {} : { env: config.env }),
    plugins: named(config.plugins, 'worker.plugins'),
    preload: named(config.preload, 'worker.preload'),
  };
  const wire = transport === undefined ? undefined : byName(transport, 'scheduler.transport');
  return JSON.stringify({ worker, folder, transport: wire });
}

/** What {@link settingsText} wrote. */
export function readSettings(text: string): WorkerSettings {
  const {
    worker: given,
    folder,
    transport,
  } = JSON.parse(text) as {
    readonly worker: NonNullable<ConfigInput['worker']>;
    readonly folder: string;
    readonly transport?: UseEntry;
  };
  const { worker } = loadConfigObject({ worker: given }, folder).config;
  const entries = Object.entries(worker).filter(([name]) => name in given);
  return { worker: Object.fromEntries(entries), folder, transport };
}

/** A time as flags and configurations are written. */
export function timeText(ms: number): string {
  return Number.isFinite(ms) ? `${ms} ms` : 'inf';
}

function named(
  entries: readonly (UseEntry | PluginEntry)[],
  field: string,
): readonly { readonly use: string }[] {
  return entries.map((entry, index) => byName(entry, `${field}[${index}]`));
}

function byName(entry: UseEntry, field: string): { readonly use: string } {
  const { use } = entry;
  if (typeof use === 'string') return { ...entry, use };
  throw new YardmasterError(
    'ERR_CONFIG',
    `${field} is given in code, which cannot be sent to workers in separate processes; name its module`,
    { field },
  );
}
