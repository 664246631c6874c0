/**
 * `yardmaster/scheduler-host`: for programs and plugins that replace a collaborator of the scheduler. A collaborator
 * is named by its class; `tokens` names what is no class.
 */
import { CLOCK, CONFIG, LOGGER } from '../plugin-host/injection.ts';
import { JOURNAL, RECORDER } from './journal.ts';
import { STIMULI } from './stimulus-queue.ts';
import { SERVER_ID } from './tokens.ts';

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
export { PluginServices } from './plugin-table.ts';
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

/** The services that are interfaces or values. Every other one is named by its class. */
export const tokens = { CLOCK, CONFIG, JOURNAL, LOGGER, RECORDER, SERVER_ID, STIMULI } as const;
