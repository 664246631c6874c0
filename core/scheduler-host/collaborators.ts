/**
 * `yardmaster/scheduler-host`: for programs and plugins that replace a collaborator of the scheduler. `tokens`
 * names the collaborators; the classes are the defaults.
 */
import { CONFIGURED_EXTENSIONS } from './plugins/configured-extensions.ts';
import { EVENT_BUS } from '../plugin-host/event-bus.ts';
import { EXTENSIONS } from './plugins/extensions.ts';
import { HOOKS } from '../plugin-host/hook-table.ts';
import { CLOCK, CONFIG, LOGGER } from '../plugin-host/injection/tokens.ts';
import { PLUGIN_CONTEXTS } from './plugins/plugin-contexts.ts';
import { RESOLVER } from '../plugin-host/loading/plugin-resolver.ts';
import { PLUGIN_SERVICES } from './plugins/plugin-services.ts';
import { PLUGINS } from './plugins/plugin-table.ts';
import { SLOTS } from '../plugin-host/policy-slots.ts';
import { CLUSTER_COMMANDS } from './commands/cluster-commands.ts';
import { COMMANDS } from './commands/commands.ts';
import { DIAGNOSTICS } from './commands/diagnostics.ts';
import { POLICY_ADMIN } from './commands/policy-admin.ts';
import {
  NANNY_PLUGIN_REGISTRY,
  WORKER_PLUGIN_REGISTRY,
} from './commands/remote-plugin-registry.ts';
import { RECORDING_COMMANDS } from './commands/recording-commands.ts';
import { WORKER_COMMANDS } from './commands/worker-commands.ts';
import { DELIVERY } from './delivery.ts';
import { EVENT_LOG } from './event-log.ts';
import { PORTS, PORTS_REPLACEMENT } from './kernel-ports.ts';
import { ERROR_REPORTS } from './life/error-reports.ts';
import { HOST_TIMERS } from './life/host-timers.ts';
import { IDLE_WATCH } from './life/idle-watch.ts';
import { LOADING } from './life/loading.ts';
import { SCHEDULER_LIFE } from './life/scheduler-life.ts';
import { SHUTDOWN } from './life/shutdown.ts';
import { GATHERER } from './results/gatherer.ts';
import { WORKER_CHANNELS } from './results/worker-channels.ts';
import { SCHEDULER } from './running-scheduler.ts';
import { SCHEDULER_HOST } from './scheduler-host.ts';
import { CLIENT_QUEUES } from './sessions/client-queues.ts';
import { DATA_RESERVATIONS } from './sessions/data-reservations.ts';
import { KEY_CLAIMS } from './sessions/key-claims.ts';
import { LISTENERS } from './sessions/listeners.ts';
import { RECONNECT_GRACE } from './sessions/reconnect-grace.ts';
import { SESSION_SERVICES } from './sessions/session-services.ts';
import { SESSIONS } from './sessions/sessions.ts';
import { WORKER_LOSSES } from './sessions/worker-losses.ts';
import { SLOW_STIMULI } from './slow-stimulus-monitor.ts';
import { STIMULI, STIMULUS_QUEUE } from './stimulus-queue.ts';
import { JOURNAL } from './journal.ts';
import { RECORDER } from './recorder.ts';
import { CLUSTER, INSIGHT, KERNEL, SERVER_ID, TRANSPORTS } from './tokens.ts';

export {
  byClass,
  byFactory,
  byValue,
  type Injectable,
  type Provider,
  type Services,
} from '../api/token.ts';
export { ConfiguredExtensions } from './plugins/configured-extensions.ts';
export { EventBus } from '../plugin-host/event-bus.ts';
export { Extensions } from './plugins/extensions.ts';
export { HookRegistry } from '../plugin-host/hook-table.ts';
export { PluginResolver } from '../plugin-host/loading/plugin-resolver.ts';
export { PluginServices } from './plugins/plugin-services.ts';
export { PluginTable } from './plugins/plugin-table.ts';
export { PolicySlotTable } from '../plugin-host/policy-slots.ts';
export { ClusterCommands } from './commands/cluster-commands.ts';
export { Commands } from './commands/commands.ts';
export { Diagnostics } from './commands/diagnostics.ts';
export { PolicyAdmin } from './commands/policy-admin.ts';
export { NannyPluginRegistry, WorkerPluginRegistry } from './commands/remote-plugin-registry.ts';
export { RecordingCommands } from './commands/recording-commands.ts';
export { WorkerCommands } from './commands/worker-commands.ts';
export { Delivery } from './delivery.ts';
export { EventLog } from './event-log.ts';
export { PortsCompiler, PortsReplacement } from './kernel-ports.ts';
export { ErrorReports } from './life/error-reports.ts';
export { HostTimers } from './life/host-timers.ts';
export { IdleWatch } from './life/idle-watch.ts';
export { Loading } from './life/loading.ts';
export { SchedulerLife } from './life/scheduler-life.ts';
export { Shutdown } from './life/shutdown.ts';
export { PluginContexts } from './plugins/plugin-contexts.ts';
export { Gatherer } from './results/gatherer.ts';
export { WorkerChannels } from './results/worker-channels.ts';
export { RunningScheduler } from './running-scheduler.ts';
export { SchedulerHost } from './scheduler-host.ts';
export { ClientQueues } from './sessions/client-queues.ts';
export { DataReservations } from './sessions/data-reservations.ts';
export { KeyClaims } from './sessions/key-claims.ts';
export { Listeners } from './sessions/listeners.ts';
export { ReconnectGrace } from './sessions/reconnect-grace.ts';
export { SessionServices } from './sessions/session-services.ts';
export { Sessions } from './sessions/sessions.ts';
export { WorkerLosses } from './sessions/worker-losses.ts';
export { SlowStimulusMonitor } from './slow-stimulus-monitor.ts';
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
