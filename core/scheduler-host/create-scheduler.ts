import { dirname } from 'node:path';
import type { Logger } from '../api/plugin.ts';
import {
  type LoadedConfig,
  type ReadConfig,
  readConfigFile,
  readConfigObject,
} from '../config/load.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { checkWorkerExtensions } from '../plugin-host/loading/check-worker-extensions.ts';
import { ProblemList } from '../plugin-host/loading/problem-list.ts';
import { CONFIGURED_EXTENSIONS } from './plugins/configured-extensions.ts';
import { Container } from '../plugin-host/injection/container.ts';
import { replaceForPlugins, replaceForProgram } from '../plugin-host/injection/replacements.ts';
import { type CommandSource, COMMANDS } from './commands/commands.ts';
import { type Loading, LOADING } from './life/loading.ts';
import { SCHEDULER_LIFE } from './life/scheduler-life.ts';
import { COMMAND_SOURCES, givenProviders, LOADING_MODULE, SCHEDULER_MODULE } from './module.ts';
import { SCHEDULER } from './running-scheduler.ts';
import { SCHEDULER_HOST } from './scheduler-host.ts';

export type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-info.ts';
export type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
export type { TransportInput } from '../host/transport-table.ts';

const REPLACEABLE = { module: SCHEDULER_MODULE, early: LOADING_MODULE };

/**
 * Makes a scheduler: reads the configuration, loads and starts plugins and policies. It listens
 * nowhere until {@link Scheduler.listen} is called.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: CreateSchedulerOptions): Promise<Scheduler> {
  const loaded = await loadConfig(options);
  const container = containerOf(loaded, options);
  const loading = container.get(LOADING);
  if (loaded.error !== undefined) await refuse(loaded.error, loaded, loading);
  await loading.load();
  const { blueprints } = container.get(CONFIGURED_EXTENSIONS);
  replaceForPlugins(container, REPLACEABLE, blueprints, options.provide);
  await loading.setUp();
  try {
    return await start(container);
  } catch (error) {
    await loading.close();
    throw error;
  }
}

/** Throws all that is wrong: the configuration itself, and what its valid parts name. */
async function refuse(error: Error, { origin }: LoadedConfig, loading: Loading): Promise<void> {
  const problems = new ProblemList(origin);
  await problems.attempt(undefined, () => {
    throw error;
  });
  await problems.attempt(undefined, () => loading.load());
  problems.throwIfAny();
}

function containerOf(loaded: LoadedConfig, options: CreateSchedulerOptions): Container {
  const given = givenProviders(loaded, { ...options, log: options.log ?? stderrLogger() });
  const container = new Container().register([...given, ...LOADING_MODULE, ...SCHEDULER_MODULE]);
  replaceForProgram(container, REPLACEABLE, options.provide);
  return container;
}

/** Makes all collaborators, and starts plugins and timers. Nothing is looked up in the container afterwards. */
async function start(container: Container): Promise<Scheduler> {
  const commands = container.get(COMMANDS);
  for (const source of COMMAND_SOURCES) commands.add(container.get<CommandSource>(source));
  container.get(SCHEDULER_HOST);
  const scheduler = container.get(SCHEDULER);
  await container.get(SCHEDULER_LIFE).start();
  return scheduler;
}

/**
 * Reads a configuration, loads what it names, and checks all options. Starts nothing.
 * @returns policies and plugins as a tree for people
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT`
 */
export async function checkConfig(options: CreateSchedulerOptions): Promise<string> {
  const loaded = await loadConfig(options);
  const log = options.log ?? stderrLogger();
  const loading = containerOf(loaded, { ...options, log }).get(LOADING);
  const problems = new ProblemList(loaded.origin);
  await problems.attempt(undefined, () => {
    if (loaded.error !== undefined) throw loaded.error;
  });
  await problems.attempt(undefined, () => loading.load());
  await problems.attempt(undefined, () =>
    checkWorkerExtensions(loaded, { clock: options.clock, log }),
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
  layers,
}: Pick<CreateSchedulerOptions, 'config' | 'configFile' | 'layers'>): Promise<ReadConfig> {
  if (typeof config === 'string') return readConfigFile(config, layers);
  if (config !== undefined || configFile === undefined) {
    const folder = configFile === undefined ? undefined : dirname(configFile);
    return readConfigObject(config ?? {}, folder, layers);
  }
  return readConfigFile(configFile, layers);
}

/** Warnings and errors, one line each. */
function stderrLogger(): Logger {
  const write = (level: string, fields: object, message?: string): void => {
    const { err } = fields as { err?: unknown };
    const text = message ?? (err instanceof Error ? err.message : JSON.stringify(fields));
    process.stderr.write(`yardmaster ${level}: ${text}\n`);
  };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields, message) => write('warning', fields, message),
    error: (fields, message) => write('error', fields, message),
  };
}
