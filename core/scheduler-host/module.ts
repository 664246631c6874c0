import { randomUUID } from 'node:crypto';
import type { Logger } from '../api/plugin.ts';
import { byClass, byFactory, byValue, type Provider } from '../api/token.ts';
import type { LoadedConfig } from '../config/load.ts';
import { LogBook } from '../host/log-book.ts';
import { TransportTable } from '../host/transport-table.ts';
import { RecordingKernel } from '../log/recording-kernel.ts';
import { CONFIGURED_EXTENSIONS, ConfiguredExtensions } from './plugins/configured-extensions.ts';
import { EVENT_BUS, EventBus } from '../plugin-host/event-bus.ts';
import { EXTENSIONS, Extensions } from './plugins/extensions.ts';
import { HookRegistry, HOOKS } from '../plugin-host/hook-table.ts';
import * as given from '../plugin-host/injection/tokens.ts';
import { PluginResolver, RESOLVER } from '../plugin-host/loading/plugin-resolver.ts';
import { PLUGIN_CONTEXTS, PluginContexts } from './plugins/plugin-contexts.ts';
import { PLUGIN_SERVICES, PluginServices } from './plugins/plugin-services.ts';
import { PLUGINS, PluginTable } from './plugins/plugin-table.ts';
import { PolicySlotTable, SLOTS } from '../plugin-host/policy-slots.ts';
import { CLUSTER_COMMANDS, ClusterCommands } from './commands/cluster-commands.ts';
import { COMMANDS, Commands } from './commands/commands.ts';
import { Diagnostics, DIAGNOSTICS } from './commands/diagnostics.ts';
import { POLICY_ADMIN, PolicyAdmin } from './commands/policy-admin.ts';
import {
  NANNY_PLUGIN_REGISTRY,
  NannyPluginRegistry,
  WORKER_PLUGIN_REGISTRY,
  WorkerPluginRegistry,
} from './commands/remote-plugin-registry.ts';
import { RECORDING_COMMANDS, RecordingCommands } from './commands/recording-commands.ts';
import { WORKER_COMMANDS, WorkerCommands } from './commands/worker-commands.ts';
import { Delivery, DELIVERY } from './delivery.ts';
import { EVENT_LOG, EventLog } from './event-log.ts';
import { JOURNAL, NO_JOURNAL } from './journal.ts';
import { NO_RECORDER, RECORDER } from './recorder.ts';
import { kernelOptions } from './kernel-options.ts';
import { PORTS, PORTS_REPLACEMENT, PortsCompiler, PortsReplacement } from './kernel-ports.ts';
import { ERROR_REPORTS, ErrorReports } from './life/error-reports.ts';
import { HOST_TIMERS, HostTimers } from './life/host-timers.ts';
import { IDLE_WATCH, IdleWatch } from './life/idle-watch.ts';
import { Loading, LOADING } from './life/loading.ts';
import { SCHEDULER_LIFE, SchedulerLife } from './life/scheduler-life.ts';
import { Shutdown, SHUTDOWN } from './life/shutdown.ts';
import { Gatherer, GATHERER } from './results/gatherer.ts';
import { WORKER_CHANNELS, WorkerChannels } from './results/worker-channels.ts';
import { RunningScheduler, SCHEDULER } from './running-scheduler.ts';
import type { CreateSchedulerOptions } from './scheduler.ts';
import { SCHEDULER_HOST, SchedulerHost } from './scheduler-host.ts';
import { CLIENT_QUEUES, ClientQueues } from './sessions/client-queues.ts';
import { DATA_RESERVATIONS, DataReservations } from './sessions/data-reservations.ts';
import { KEY_CLAIMS, KeyClaims } from './sessions/key-claims.ts';
import { Listeners, LISTENERS } from './sessions/listeners.ts';
import { RECONNECT_GRACE, ReconnectGrace } from './sessions/reconnect-grace.ts';
import { SESSION_SERVICES, SessionServices } from './sessions/session-services.ts';
import { Sessions, SESSIONS } from './sessions/sessions.ts';
import { WORKER_LOSSES, WorkerLosses } from './sessions/worker-losses.ts';
import { SLOW_STIMULI, SlowStimulusMonitor } from './slow-stimulus-monitor.ts';
import { STIMULI, STIMULUS_QUEUE, StimulusQueue } from './stimulus-queue.ts';
import { CLUSTER, INSIGHT, KERNEL, LOG_BOOK, ON_CRASH, SERVER_ID, TRANSPORTS } from './tokens.ts';

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

/** What answers commands, in the order in which the command `commands` lists them. */
export const COMMAND_SOURCES = [
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
export function givenProviders(
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
