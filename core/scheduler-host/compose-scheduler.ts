import type { Logger } from '../api/plugin.ts';
import { byFactory, byValue, type Provider, type ServiceId, type Services } from '../api/token.ts';
import type { LoadedConfig, ReadConfig } from '../config/check.ts';
import { type Inspect, LogBook } from '../host/log.ts';
import { Insight } from '../kernel/insight.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { RecordingKernel } from '../log/recording-kernel.ts';
import { EventBus, HookRegistry } from '../plugin-host/hooks.ts';
import { ProblemList } from '../plugin-host/extension-options.ts';
import * as given from '../host/tokens.ts';
import { Container, replaceForPlugins, replaceForProgram } from '../plugin-host/injection.ts';
import { type ModuleSource, SERVER_ID } from '../host/tokens.ts';
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
import { INGRESS, type Ingress, kernelOptions, ON_CRASH, STIMULI } from './tokens.ts';
import { WorkerCommands } from './worker-commands.ts';

/** The parts of a scheduler, in the order in which a reader meets them. Each is made once, when it is first needed. */
export const SCHEDULER_MODULE: readonly Provider[] = [
  // The kernel: policies and hooks are compiled into plain functions, and injection ends.
  byFactory(SERVER_ID, () => `scheduler-${globalThis.crypto.randomUUID()}`),
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

/** The platform that a scheduler runs on. */
export interface Platform {
  readonly modules: ModuleSource;
  readonly inspect: Inspect;
  /** Makes the way by which connections and stimuli from outside reach the scheduler. */
  readonly ingress: (services: Services) => Ingress;
}

/** The options of a scheduler whose configuration has been read. */
export type ComposeOptions = Omit<
  CreateSchedulerOptions,
  'config' | 'configFile' | 'layers' | 'configuration' | 'log'
> & { readonly log: Logger };

/**
 * Makes a scheduler on any platform: loads and starts plugins and policies. It listens nowhere until
 * {@link Scheduler.listen} is called.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function composeScheduler(
  loaded: ReadConfig,
  options: ComposeOptions,
  platform: Platform,
): Promise<Scheduler> {
  const container = containerOf(loaded, options, platform);
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

/** The collaborators of a scheduler, of which none is made yet. */
export function containerOf(
  loaded: LoadedConfig,
  options: ComposeOptions,
  platform: Platform,
): Container {
  const given = givenProviders(loaded, options, platform);
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
  options: ComposeOptions,
  { modules, inspect, ingress }: Platform,
): readonly Provider[] {
  const { clock, builtins, transports, fallbackTransports, onCrash } = options;
  const logBook = new LogBook(options.log, clock, inspect);
  return [
    byValue(given.CLOCK, clock),
    byValue(given.LOGGER, logBook),
    byValue(given.BUILTINS, builtins),
    byValue(given.LOADED_CONFIG, loaded),
    byValue(given.CONFIG, loaded.config),
    byValue(given.CONFIG_FOLDER, loaded.folder),
    byValue(given.MODULES, modules),
    byFactory(INGRESS, ingress),
    byValue(LogBook, logBook),
    byValue(ON_CRASH, onCrash ?? (() => undefined)),
    byValue(TransportTable, new TransportTable(clock, builtins, transports, fallbackTransports)),
  ];
}
