/**
 * `yardmaster/worker-host`: for programs and plugins that replace a collaborator of a worker. `tokens` names the
 * collaborators; the classes are the defaults.
 */
import { CLOCK, LOGGER } from '../plugin-host/injection.ts';
import { HOSTED_WORKER, WORKER_HOST } from './worker-host.ts';
import { MEMORY_REACTIONS } from './memory-reactions.ts';
import { WORKER_MEMORY } from './worker-memory.ts';
import { WORKER_STATUS } from './worker-status.ts';
import { PEER_CHANNELS } from './peer-channels.ts';
import { SCHEDULER_MESSAGES } from './scheduler-messages.ts';
import { WORKER_LINK } from './worker-link.ts';
import { DATA_SERVER, PEER_REQUESTS } from './data-server.ts';
import { WORKER_DESCRIPTION } from './worker-description.ts';
import { WORKER_INSPECTION } from './worker-inspection.ts';
import { CLOSER, WORKER_SERVING } from './worker-serving.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_KERNEL, WORKER_OPTIONS } from './tokens.ts';
import { WORKER_ACTIVITIES } from './worker-activities.ts';
import { WORKER_ENDING } from './worker-ending.ts';
import { WORKER_INBOX } from './worker-inbox.ts';
import { WORKER_LIFE } from './worker-life.ts';
import { WORKER_PLUGINS } from './worker-plugins.ts';

export {
  byClass,
  byFactory,
  byValue,
  type Injectable,
  type Provider,
  type Services,
} from '../api/token.ts';
export { HostedWorker } from './worker-host.ts';
export { MemoryReactions } from './memory-reactions.ts';
export { WorkerMemory } from './worker-memory.ts';
export { WorkerStatusTracker } from './worker-status.ts';
export { PeerChannels } from './peer-channels.ts';
export { SchedulerMessages } from './scheduler-messages.ts';
export { WorkerLink } from './worker-link.ts';
export { DataServer } from './data-server.ts';
export { PeerRequests } from './data-server.ts';
export { WorkerDescription } from './worker-description.ts';
export { WorkerInspection } from './worker-inspection.ts';
export { Closer, WorkerServing } from './worker-serving.ts';
export { WorkerActivities } from './worker-activities.ts';
export { WorkerEnding } from './worker-ending.ts';
export { WorkerHost } from './worker-host.ts';
export { WorkerInbox } from './worker-inbox.ts';
export { WorkerLife } from './worker-life.ts';
export { WorkerPlugins } from './worker-plugins.ts';

/** What a collaborator can be given, and the token of each collaborator. */
export const tokens = {
  CLOCK,
  LOGGER,
  EXECUTOR,
  WORKER_OPTIONS,
  WORKER_IDENTITY,
  WORKER_MEMORY,
  DATA_SERVER,
  WORKER_KERNEL,
  WORKER_INBOX,
  WORKER_HOST,
  WORKER_ACTIVITIES,
  WORKER_LINK,
  SCHEDULER_MESSAGES,
  WORKER_STATUS,
  WORKER_DESCRIPTION,
  WORKER_INSPECTION,
  PEER_CHANNELS,
  PEER_REQUESTS,
  WORKER_SERVING,
  MEMORY_REACTIONS,
  WORKER_PLUGINS,
  CLOSER,
  WORKER_ENDING,
  WORKER_LIFE,
  HOSTED_WORKER,
} as const;
