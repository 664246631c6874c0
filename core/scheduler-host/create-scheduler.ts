import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import type { Logger } from '../api/plugin.ts';
import { byClass, byFactory, byValue, type Provider } from '../api/token.ts';
import {
  type LoadedConfig,
  type ReadConfig,
  readConfigFile,
  readConfigObject,
} from '../config/load.ts';
import { LogBook } from '../host/log.ts';
import { RecordingKernel } from '../log/recording-kernel.ts';
import { EVENT_BUS, EventBus } from '../plugin-host/event-bus.ts';
import { ProblemList } from '../plugin-host/extension-options.ts';
import { HookRegistry, HOOKS } from '../plugin-host/hook-table.ts';
import * as given from '../plugin-host/injection.ts';
import { Container, replaceForPlugins, replaceForProgram } from '../plugin-host/injection.ts';
import { checkWorkerExtensions } from '../plugin-host/load-extensions.ts';
import { PluginResolver, RESOLVER } from '../plugin-host/plugin-resolver.ts';
import { PolicySlotTable, SLOTS } from '../plugin-host/policy-slots.ts';
import { TransportTable } from '../plugin-host/transport-table.ts';
import { CLIENT_QUEUES, ClientQueues } from './client-queues.ts';
import { CLUSTER_COMMANDS, ClusterCommands, Diagnostics, DIAGNOSTICS } from './cluster-commands.ts';
import {
  COMMANDS,
  Commands,
  type CommandSource,
  RECORDING_COMMANDS,
  RecordingCommands,
} from './commands.ts';
import { DATA_RESERVATIONS, DataReservations, KEY_CLAIMS, KeyClaims } from './data-reservations.ts';
import { Delivery, DELIVERY } from './delivery.ts';
import { ERROR_REPORTS, ErrorReports } from './error-reports.ts';
import { EVENT_LOG, EventLog } from './event-log.ts';
import {
  CONFIGURED_EXTENSIONS,
  ConfiguredExtensions,
  EXTENSIONS,
  Extensions,
} from './extensions.ts';
import { Gatherer, GATHERER } from './gatherer.ts';
import { JOURNAL, NO_JOURNAL, NO_RECORDER, RECORDER } from './journal.ts';
import { PORTS, PORTS_REPLACEMENT, PortsCompiler, PortsReplacement } from './kernel-ports.ts';
import { Listeners, LISTENERS } from './listeners.ts';
import { RECONNECT_GRACE, ReconnectGrace, WORKER_LOSSES, WorkerLosses } from './membership.ts';
import {
  PLUGIN_CONTEXTS,
  PLUGIN_SERVICES,
  PluginContexts,
  PluginServices,
} from './plugin-contexts.ts';
import { PLUGINS, PluginTable } from './plugin-table.ts';
import { POLICY_ADMIN, PolicyAdmin } from './policy-admin.ts';
import {
  NANNY_PLUGIN_REGISTRY,
  NannyPluginRegistry,
  WORKER_PLUGIN_REGISTRY,
  WorkerPluginRegistry,
} from './remote-plugin-registry.ts';
import {
  SCHEDULER_HOST,
  SchedulerHost,
  SLOW_STIMULI,
  SlowStimulusMonitor,
} from './scheduler-host.ts';
import {
  HOST_TIMERS,
  HostTimers,
  IDLE_WATCH,
  IdleWatch,
  Loading,
  LOADING,
  SCHEDULER_LIFE,
  SchedulerLife,
} from './scheduler-life.ts';
import {
  type CreateSchedulerOptions,
  RunningScheduler,
  type Scheduler,
  SCHEDULER,
} from './scheduler.ts';
import { SESSION_SERVICES, SessionServices } from './session.ts';
import { Sessions, SESSIONS } from './sessions.ts';
import { Shutdown, SHUTDOWN } from './shutdown.ts';
import { STIMULI, STIMULUS_QUEUE, StimulusQueue } from './stimulus-queue.ts';
import {
  CLUSTER,
  INSIGHT,
  KERNEL,
  kernelOptions,
  LOG_BOOK,
  ON_CRASH,
  SERVER_ID,
  TRANSPORTS,
} from './tokens.ts';
import { WORKER_CHANNELS, WorkerChannels } from './worker-channels.ts';
import { WORKER_COMMANDS, WorkerCommands } from './worker-commands.ts';

export type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-host.ts';
export type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
export type { TransportInput } from '../plugin-host/transport-table.ts';

/** What a scheduler is made of, in the order in which a reader meets it. Each is made once, when it is first needed. */
export const SCHEDULER_MODULE: readonly Provider[] = [
  // The kernel: policies and hooks are compiled into plain functions, and injection ends.
  byFactory(SERVER_ID, () => `scheduler-${randomUUID()}`),
  byClass(PORTS, PortsCompiler),
  byFactory(KERNEL, (services) => {
    const options = kernelOptions(services.get(given.CONFIG));
    const nowMs = services.get(given.CLOCK).nowMs();
    return new RecordingKernel(options, services.get(PORTS).compile(), nowMs);
  }),
  byFactory(CLUSTER, (services) => services.get(KERNEL).cluster),
  byFactory(INSIGHT, (services) => services.get(KERNEL).insight),
  byClass(PORTS_REPLACEMENT, PortsReplacement),

  // The life of a stimulus.
  byValue(JOURNAL, NO_JOURNAL),
  byValue(RECORDER, NO_RECORDER),
  byClass(STIMULUS_QUEUE, StimulusQueue),
  byClass(CLIENT_QUEUES, ClientQueues),
  byFactory(STIMULI, (services) => services.get(CLIENT_QUEUES)),
  byClass(SCHEDULER_HOST, SchedulerHost),
  byClass(DELIVERY, Delivery),
  byClass(EVENT_LOG, EventLog),
  byClass(SLOW_STIMULI, SlowStimulusMonitor),

  // Connections of workers and clients.
  byClass(SESSIONS, Sessions),
  byClass(SESSION_SERVICES, SessionServices),
  byClass(LISTENERS, Listeners),
  byClass(RECONNECT_GRACE, ReconnectGrace),
  byClass(WORKER_LOSSES, WorkerLosses),
  byClass(DATA_RESERVATIONS, DataReservations),
  byClass(KEY_CLAIMS, KeyClaims),

  // Results that the scheduler fetches from workers.
  byClass(WORKER_CHANNELS, WorkerChannels),
  byClass(GATHERER, Gatherer),

  // Commands.
  byClass(COMMANDS, Commands),
  byClass(CLUSTER_COMMANDS, ClusterCommands),
  byClass(POLICY_ADMIN, PolicyAdmin),
  byClass(WORKER_PLUGIN_REGISTRY, WorkerPluginRegistry),
  byClass(NANNY_PLUGIN_REGISTRY, NannyPluginRegistry),
  byClass(DIAGNOSTICS, Diagnostics),
  byClass(RECORDING_COMMANDS, RecordingCommands),
  byClass(WORKER_COMMANDS, WorkerCommands),

  // Plugins, and their way back into the scheduler.
  byClass(PLUGIN_CONTEXTS, PluginContexts),
  byClass(EXTENSIONS, Extensions),

  // Time, errors, start and end.
  byClass(ERROR_REPORTS, ErrorReports),
  byClass(IDLE_WATCH, IdleWatch),
  byClass(HOST_TIMERS, HostTimers),
  byClass(SHUTDOWN, Shutdown),
  byClass(SCHEDULER_LIFE, SchedulerLife),
  byClass(SCHEDULER, RunningScheduler),
];

/** What loads the extensions that the configuration names, before there is a kernel. */
export const LOADING_MODULE: readonly Provider[] = [
  byClass(RESOLVER, PluginResolver),
  byClass(SLOTS, PolicySlotTable),
  byClass(HOOKS, HookRegistry),
  byClass(EVENT_BUS, EventBus),
  byClass(PLUGINS, PluginTable),
  byClass(PLUGIN_SERVICES, PluginServices),
  byClass(CONFIGURED_EXTENSIONS, ConfiguredExtensions),
  byClass(LOADING, Loading),
];

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

/** What answers commands, in the order in which the command `commands` lists them. */
const COMMAND_SOURCES = [
  CLUSTER_COMMANDS,
  KEY_CLAIMS,
  DATA_RESERVATIONS,
  POLICY_ADMIN,
  WORKER_PLUGIN_REGISTRY,
  NANNY_PLUGIN_REGISTRY,
  DIAGNOSTICS,
  RECORDING_COMMANDS,
  WORKER_COMMANDS,
] as const;

/** What a scheduler is given. */
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
    byValue(LOG_BOOK, logBook),
    byValue(ON_CRASH, onCrash ?? (() => undefined)),
    byValue(TRANSPORTS, new TransportTable(clock, builtins, transports, fallbackTransports)),
  ];
}
