/**
 * `yardmaster/worker-host`: for programs and plugins that replace a collaborator of a worker. A collaborator is named
 * by its class; `tokens` names what is no class.
 */
import { CLOCK, LOGGER } from '../plugin-host/injection.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';

export {
  byClass,
  byFactory,
  byValue,
  type Injectable,
  type Provider,
  type Services,
} from '../api/token.ts';
export { DataServer, PeerRequests } from './data-server.ts';
export { MemoryReactions } from './memory-reactions.ts';
export { PeerChannels } from './peer-channels.ts';
export { SchedulerMessages } from './scheduler-messages.ts';
export { WorkerActivities } from './worker-activities.ts';
export { WorkerDescription } from './worker-description.ts';
export { WorkerEnding } from './worker-ending.ts';
export { HostedWorker, WorkerHost } from './worker-host.ts';
export { WorkerInbox } from './worker-inbox.ts';
export { WorkerInspection } from './worker-inspection.ts';
export { WorkerLife } from './worker-life.ts';
export { WorkerLink } from './worker-link.ts';
export { WorkerMemory } from './worker-memory.ts';
export { WorkerPlugins } from './worker-plugins.ts';
export { Closer, WorkerServing } from './worker-serving.ts';
export { WorkerStatusTracker } from './worker-status.ts';

/** The services that are interfaces or values. Every other one is named by its class. */
export const tokens = { CLOCK, EXECUTOR, LOGGER, WORKER_IDENTITY, WORKER_OPTIONS } as const;
