import { dirname } from 'node:path';
import { inspect } from 'node:util';
import type { ReadConfig } from '../config/check.ts';
import { checkWorkerExtensions } from '../plugin-host/load-extensions.ts';
import { ModuleFiles } from '../plugin-host/module-files.ts';
import { ProblemList } from '../plugin-host/extension-options.ts';
import { lineLog } from '../shared/line-log.ts';
import { composeScheduler, containerOf, type Platform } from './compose-scheduler.ts';
import { Listeners } from './listeners.ts';
import { Loading } from './scheduler-life.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';

export type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-host.ts';
export type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
export type { TransportInput } from '../api/transport.ts';

/**
 * Makes a scheduler: reads the configuration, loads and starts plugins and policies. It listens
 * nowhere until {@link Scheduler.listen} is called.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: CreateSchedulerOptions): Promise<Scheduler> {
  const loaded = await loadConfig(options);
  return composeScheduler(
    loaded,
    { ...options, log: options.log ?? lineLog(stderr) },
    nodeFrom(loaded),
  );
}

/** Node, as seen from the folder of a configuration. */
function nodeFrom({ folder }: ReadConfig): Platform {
  return {
    modules: new ModuleFiles(folder),
    inspect,
    ingress: (services) => services.get<Listeners>(Listeners),
  };
}

/**
 * Reads a configuration, loads what it names, and checks all options. Starts nothing.
 * @returns policies and plugins as a tree for people
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function checkConfig(options: CreateSchedulerOptions): Promise<string> {
  const loaded = await loadConfig(options);
  const log = options.log ?? lineLog(stderr);
  const node = nodeFrom(loaded);
  const loading = containerOf(loaded, { ...options, log }, node).get(Loading);
  const problems = new ProblemList(loaded.origin);
  await problems.attempt(undefined, () => {
    if (loaded.error !== undefined) throw loaded.error;
  });
  await problems.attempt(undefined, () => loading.load());
  await problems.attempt(undefined, () =>
    checkWorkerExtensions(loaded, options.builtins, node.modules, { clock: options.clock, log }),
  );
  // A transport that could not be loaded would be missed here once more.
  if (problems.isEmpty) await problems.attempt(undefined, () => loading.checkAddress());
  problems.throwIfAny();
  return loading.report();
}

/**
 * The configuration that {@link createScheduler} would use, with what is wrong with it.
 * @throws YardmasterError `ERR_CONFIG` when it cannot be read
 */
async function loadConfig({
  config,
  configFile,
  configuration,
  layers,
}: CreateSchedulerOptions): Promise<ReadConfig> {
  if (typeof config === 'string') return configuration.readFile(config, layers);
  if (config !== undefined || configFile === undefined) {
    const folder = configFile === undefined ? undefined : dirname(configFile);
    return configuration.readObject(config ?? {}, folder, layers);
  }
  return configuration.readFile(configFile, layers);
}

const stderr = { push: (line: string) => process.stderr.write(`yardmaster ${line}\n`) };
