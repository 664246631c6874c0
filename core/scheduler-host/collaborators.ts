/**
 * `yardmaster/scheduler-host`: for programs and plugins that replace a collaborator of the scheduler. `tokens`
 * names the collaborators; the classes are the defaults.
 */
import { CONFIGURED_EXTENSIONS, EXTENSIONS } from './extensions.ts';
import { EVENT_BUS } from '../plugin-host/event-bus.ts';
import { HOOKS } from '../plugin-host/hook-table.ts';
import { CLOCK, CONFIG, LOGGER } from '../plugin-host/injection.ts';
import { PLUGIN_CONTEXTS, PLUGIN_SERVICES } from './plugin-contexts.ts';
import { RESOLVER } from '../plugin-host/plugin-resolver.ts';
import { PLUGINS } from './plugin-table.ts';
import { SLOTS } from '../plugin-host/policy-slots.ts';
import { CLUSTER_COMMANDS, DIAGNOSTICS } from './cluster-commands.ts';
import { COMMANDS, RECORDING_COMMANDS } from './commands.ts';
import { POLICY_ADMIN } from './policy-admin.ts';
import { NANNY_PLUGIN_REGISTRY, WORKER_PLUGIN_REGISTRY } from './remote-plugin-registry.ts';
import { WORKER_COMMANDS } from './worker-commands.ts';
import { DELIVERY } from './delivery.ts';
import { EVENT_LOG } from './event-log.ts';
import { PORTS, PORTS_REPLACEMENT } from './kernel-ports.ts';
import { ERROR_REPORTS } from './error-reports.ts';
import { HOST_TIMERS, IDLE_WATCH, LOADING, SCHEDULER_LIFE } from './scheduler-life.ts';
import { SHUTDOWN } from './shutdown.ts';
import { GATHERER } from './gatherer.ts';
import { WORKER_CHANNELS } from './worker-channels.ts';
import { SCHEDULER } from './scheduler.ts';
import { SCHEDULER_HOST, SLOW_STIMULI } from './scheduler-host.ts';
import { CLIENT_QUEUES } from './client-queues.ts';
import { DATA_RESERVATIONS, KEY_CLAIMS } from './data-reservations.ts';
import { LISTENERS } from './listeners.ts';
import { RECONNECT_GRACE, WORKER_LOSSES } from './membership.ts';
import { SESSION_SERVICES } from './session.ts';
import { SESSIONS } from './sessions.ts';
import { STIMULI, STIMULUS_QUEUE } from './stimulus-queue.ts';
import { JOURNAL, RECORDER } from './journal.ts';
import { CLUSTER, INSIGHT, KERNEL, SERVER_ID, TRANSPORTS } from './tokens.ts';

export {
  byClass,
  byFactory,
  byValue,
  type Injectable,
  type Provider,
  type Services,
} from '../api/token.ts';
export { ConfiguredExtensions } from './extensions.ts';
export { EventBus } from '../plugin-host/event-bus.ts';
export { Extensions } from './extensions.ts';
export { HookRegistry } from '../plugin-host/hook-table.ts';
export { PluginResolver } from '../plugin-host/plugin-resolver.ts';
export { PluginServices } from './plugin-contexts.ts';
export { PluginTable } from './plugin-table.ts';
export { PolicySlotTable } from '../plugin-host/policy-slots.ts';
export { ClusterCommands } from './cluster-commands.ts';
export { Commands } from './commands.ts';
export { Diagnostics } from './cluster-commands.ts';
export { PolicyAdmin } from './policy-admin.ts';
export { NannyPluginRegistry, WorkerPluginRegistry } from './remote-plugin-registry.ts';
export { RecordingCommands } from './commands.ts';
export { WorkerCommands } from './worker-commands.ts';
export { Delivery } from './delivery.ts';
export { EventLog } from './event-log.ts';
export { PortsCompiler, PortsReplacement } from './kernel-ports.ts';
export { ErrorReports } from './error-reports.ts';
export { HostTimers } from './scheduler-life.ts';
export { IdleWatch } from './scheduler-life.ts';
export { Loading } from './scheduler-life.ts';
export { SchedulerLife } from './scheduler-life.ts';
export { Shutdown } from './shutdown.ts';
export { PluginContexts } from './plugin-contexts.ts';
export { Gatherer } from './gatherer.ts';
export { WorkerChannels } from './worker-channels.ts';
export { RunningScheduler } from './scheduler.ts';
export { SchedulerHost } from './scheduler-host.ts';
export { ClientQueues } from './client-queues.ts';
export { DataReservations } from './data-reservations.ts';
export { KeyClaims } from './data-reservations.ts';
export { Listeners } from './listeners.ts';
export { ReconnectGrace } from './membership.ts';
export { SessionServices } from './session.ts';
export { Sessions } from './sessions.ts';
export { WorkerLosses } from './membership.ts';
export { SlowStimulusMonitor } from './scheduler-host.ts';
export { StimulusQueue } from './stimulus-queue.ts';

/** What a collaborator can be given, and the token of each collaborator. */
export const tokens = {
  CLOCK,
  CONFIG,
  LOGGER,
  TRANSPORTS,
  RESOLVER,
  SLOTS,
  HOOKS,
  EVENT_BUS,
  PLUGINS,
  PLUGIN_SERVICES,
  CONFIGURED_EXTENSIONS,
  LOADING,
  PORTS,
  KERNEL,
  CLUSTER,
  INSIGHT,
  PORTS_REPLACEMENT,
  STIMULUS_QUEUE,
  CLIENT_QUEUES,
  STIMULI,
  SCHEDULER_HOST,
  DELIVERY,
  EVENT_LOG,
  SLOW_STIMULI,
  JOURNAL,
  RECORDER,
  SERVER_ID,
  SESSIONS,
  SESSION_SERVICES,
  LISTENERS,
  RECONNECT_GRACE,
  WORKER_LOSSES,
  DATA_RESERVATIONS,
  KEY_CLAIMS,
  WORKER_CHANNELS,
  GATHERER,
  COMMANDS,
  CLUSTER_COMMANDS,
  POLICY_ADMIN,
  WORKER_PLUGIN_REGISTRY,
  NANNY_PLUGIN_REGISTRY,
  DIAGNOSTICS,
  WORKER_COMMANDS,
  RECORDING_COMMANDS,
  PLUGIN_CONTEXTS,
  EXTENSIONS,
  ERROR_REPORTS,
  IDLE_WATCH,
  HOST_TIMERS,
  SHUTDOWN,
  SCHEDULER_LIFE,
  SCHEDULER,
} as const;
