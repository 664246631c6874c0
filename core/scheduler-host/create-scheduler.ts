import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import type { Logger } from '../api/plugin.ts';
import { byFactory, byValue, type Provider, type ServiceId } from '../api/token.ts';
import type { LoadedConfig, ReadConfig } from '../config/load.ts';
import { LogBook } from '../host/log.ts';
import { Insight } from '../kernel/insight.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { RecordingKernel } from '../log/recording-kernel.ts';
import { EventBus, HookRegistry } from '../plugin-host/hooks.ts';
import { ProblemList } from '../plugin-host/extension-options.ts';
import * as given from '../host/tokens.ts';
import { Container, replaceForPlugins, replaceForProgram } from '../plugin-host/injection.ts';
import { SERVER_ID } from '../host/tokens.ts';
import { checkWorkerExtensions } from '../plugin-host/load-extensions.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { TransportTable } from './transport-table.ts';
import { ClusterState } from '../state/cluster.ts';
import { ClientQueues } from './client-queues.ts';
import { ClusterCommands, Diagnostics } from './cluster-commands.ts';
import { Commands, type CommandSource, RecordingCommands } from './commands.ts';
import { DataReservations, KeyClaims } from './data-reservations.ts';
import { ConfiguredExtensions } from './extensions.ts';
import { JOURNAL, NO_JOURNAL, NO_RECORDER, RECORDER } from './journal.ts';
import { PortsCompiler } from './kernel-ports.ts';
import { PluginServices, PluginTable } from './plugin-table.ts';
import { PolicyAdmin } from './policy-admin.ts';
import { NannyPluginRegistry, WorkerPluginRegistry } from './remote-plugin-registry.ts';
import { SchedulerHost } from './scheduler-host.ts';
import { Loading, SchedulerLife } from './scheduler-life.ts';
import { type CreateSchedulerOptions, RunningScheduler, type Scheduler } from './scheduler.ts';
import { kernelOptions, ON_CRASH, STIMULI } from './tokens.ts';
import { WorkerCommands } from './worker-commands.ts';

export type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-host.ts';
export type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
export type { TransportInput } from '../api/transport.ts';

/** The parts of a scheduler, in the order in which a reader meets them. Each is made once, when it is first needed. */
export const SCHEDULER_MODULE: readonly Provider[] = [
  // The kernel: policies and hooks are compiled into plain functions, and injection ends.
  byFactory(SERVER_ID, () => `scheduler-${randomUUID()}`),
  byFactory(SchedulerKernel, (services) => {
    const options = kernelOptions(services.get(given.CONFIG));
    const nowMs = services.get(given.CLOCK).nowMs();
    return new RecordingKernel(options, services.get(PortsCompiler).compile(), nowMs);
  }),
  byFactory(ClusterState, (services) => services.get(SchedulerKernel).cluster),
  byFactory(Insight, (services) => services.get(SchedulerKernel).insight),
  byValue(JOURNAL, NO_JOURNAL),
  byValue(RECORDER, NO_RECORDER),
  byFactory(STIMULI, (services) => services.get(ClientQueues)),
];

/** The loader of the extensions that the configuration names, before there is a kernel. */
const EARLY: readonly ServiceId<unknown>[] = [
  PluginResolver,
  PolicySlotTable,
  HookRegistry,
  EventBus,
  PluginTable,
  PluginServices,
  ConfiguredExtensions,
  Loading,
];

const REPLACEABLE = { module: SCHEDULER_MODULE, early: EARLY };

/**
 * Makes a scheduler: reads the configuration, loads and starts plugins and policies. It listens
 * nowhere until {@link Scheduler.listen} is called.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: CreateSchedulerOptions): Promise<Scheduler> {
  const loaded = await loadConfig(options);
  const container = containerOf(loaded, options);
  const loading = container.get(Loading);
  if (loaded.error !== undefined) await refuse(loaded.error, loaded, loading);
  await loading.load();
  const { blueprints } = container.get(ConfiguredExtensions);
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
  const container = new Container().register([...given, ...SCHEDULER_MODULE]);
  replaceForProgram(container, REPLACEABLE, options.provide);
  return container;
}

/** Makes all collaborators, and starts plugins and timers. Nothing is looked up in the container afterwards. */
async function start(container: Container): Promise<Scheduler> {
  const commands = container.get(Commands);
  for (const source of COMMAND_SOURCES) commands.add(container.get<CommandSource>(source));
  container.get(SchedulerHost);
  const scheduler = container.get(RunningScheduler);
  await container.get(SchedulerLife).start();
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
  const loading = containerOf(loaded, { ...options, log }).get(Loading);
  const problems = new ProblemList(loaded.origin);
  await problems.attempt(undefined, () => {
    if (loaded.error !== undefined) throw loaded.error;
  });
  await problems.attempt(undefined, () => loading.load());
  await problems.attempt(undefined, () =>
    checkWorkerExtensions(loaded, options.builtins, { clock: options.clock, log }),
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

/** The sources of commands, in the order in which the command `commands` lists them. */
const COMMAND_SOURCES = [
  ClusterCommands,
  KeyClaims,
  DataReservations,
  PolicyAdmin,
  WorkerPluginRegistry,
  NannyPluginRegistry,
  Diagnostics,
  RecordingCommands,
  WorkerCommands,
] as const;

function givenProviders(
  loaded: LoadedConfig,
  options: CreateSchedulerOptions & { readonly log: Logger },
): readonly Provider[] {
  const { clock, builtins, transports, fallbackTransports, onCrash } = options;
  const logBook = new LogBook(options.log, clock);
  return [
    byValue(given.CLOCK, clock),
    byValue(given.LOGGER, logBook),
    byValue(given.BUILTINS, builtins),
    byValue(given.LOADED_CONFIG, loaded),
    byValue(given.CONFIG, loaded.config),
    byValue(given.CONFIG_FOLDER, loaded.folder),
    byValue(LogBook, logBook),
    byValue(ON_CRASH, onCrash ?? (() => undefined)),
    byValue(TransportTable, new TransportTable(clock, builtins, transports, fallbackTransports)),
  ];
}
