/**
 * `yardmaster/scheduler-host`: for programs and plugins that replace a collaborator of the scheduler. A collaborator
 * is named by its class; `tokens` names what is no class.
 */
import { CLOCK, CONFIG, LOGGER, SERVER_ID } from '../plugin-host/injection.ts';
import { JOURNAL, RECORDER } from './journal.ts';
import { STIMULI } from './stimulus-queue.ts';

export {
  byClass,
  byFactory,
  byValue,
  type Injectable,
  type Provider,
  type Services,
} from '../api/token.ts';
export { EventBus } from '../plugin-host/event-bus.ts';
export { HookRegistry } from '../plugin-host/hook-table.ts';
export { PluginResolver } from '../plugin-host/plugin-resolver.ts';
export { PolicySlotTable } from '../plugin-host/policy-slots.ts';
export { ClientQueues } from './client-queues.ts';
export { ClusterCommands, Diagnostics } from './cluster-commands.ts';
export { Commands, RecordingCommands } from './commands.ts';
export { DataReservations, KeyClaims } from './data-reservations.ts';
export { Delivery } from './delivery.ts';
export { ErrorReports } from './error-reports.ts';
export { EventLog } from './event-log.ts';
export { ConfiguredExtensions, Extensions } from './extensions.ts';
export { Gatherer } from './gatherer.ts';
export { PortsCompiler, PortsReplacement } from './kernel-ports.ts';
export { Listeners } from './listeners.ts';
export { ReconnectGrace, WorkerLosses } from './membership.ts';
export { PluginContexts } from './plugin-contexts.ts';
export { PluginServices, PluginTable } from './plugin-table.ts';
export { PolicyAdmin } from './policy-admin.ts';
export { NannyPluginRegistry, WorkerPluginRegistry } from './remote-plugin-registry.ts';
export { SchedulerHost, SlowStimulusMonitor } from './scheduler-host.ts';
export { HostTimers, IdleWatch, Loading, SchedulerLife } from './scheduler-life.ts';
export { RunningScheduler } from './scheduler.ts';
export { SessionServices } from './session.ts';
export { Sessions } from './sessions.ts';
export { Shutdown } from './shutdown.ts';
export { StimulusQueue } from './stimulus-queue.ts';
export { WorkerChannels } from './worker-channels.ts';
export { WorkerCommands } from './worker-commands.ts';

/** The services that are interfaces or values. Every other one is named by its class. */
export const tokens = { CLOCK, CONFIG, JOURNAL, LOGGER, RECORDER, SERVER_ID, STIMULI } as const;
