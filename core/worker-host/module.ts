import { byClass, byFactory, type Provider } from '../api/token.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { DATA_SERVER, DataServer } from './serving/data-server.ts';
import { MEMORY_REACTIONS, MemoryReactions } from './memory/memory-reactions.ts';
import { PEER_CHANNELS, PeerChannels } from './peer-channels.ts';
import { PEER_REQUESTS, PeerRequests } from './serving/peer-requests.ts';
import { HOSTED_WORKER, HostedWorker } from './hosted-worker.ts';
import { SCHEDULER_MESSAGES, SchedulerMessages } from './scheduler/scheduler-messages.ts';
import { WORKER_IDENTITY, WORKER_KERNEL, WORKER_OPTIONS } from './tokens.ts';
import { WORKER_ACTIVITIES, WorkerActivities } from './worker-activities.ts';
import { WORKER_DESCRIPTION, WorkerDescription } from './serving/worker-description.ts';
import { WORKER_ENDING, WorkerEnding } from './worker-ending.ts';
import { WORKER_HOST, WorkerHost } from './worker-host.ts';
import { WORKER_INBOX, WorkerInbox } from './worker-inbox.ts';
import { WORKER_INSPECTION, WorkerInspection } from './serving/worker-inspection.ts';
import { WORKER_LIFE, WorkerLife } from './worker-life.ts';
import { WORKER_LINK, WorkerLink } from './scheduler/worker-link.ts';
import { WORKER_MEMORY, WorkerMemory } from './memory/worker-memory.ts';
import { kernelSettings } from './worker-options.ts';
import { WORKER_PLUGINS, WorkerPlugins } from './worker-plugins.ts';
import { Closer, CLOSER, WORKER_SERVING, WorkerServing } from './serving/worker-serving.ts';
import { WORKER_STATUS, WorkerStatusTracker } from './memory/worker-status-tracker.ts';

/** What a worker is made of, in the order in which a reader meets it. Each is made once, when it is first needed. */
export const WORKER_MODULE: readonly Provider[] = [
  // What is there before the worker listens, and so before it has an address.
  byClass(WORKER_MEMORY, WorkerMemory),
  byClass(DATA_SERVER, DataServer),

  // The life of an event.
  byFactory(WORKER_KERNEL, (services) => {
    const identity = services.get(WORKER_IDENTITY);
    return new WorkerKernel(kernelSettings(services.get(WORKER_OPTIONS), identity));
  }),
  byClass(WORKER_INBOX, WorkerInbox),
  byClass(WORKER_HOST, WorkerHost),
  byClass(WORKER_ACTIVITIES, WorkerActivities),

  // The scheduler.
  byClass(WORKER_LINK, WorkerLink),
  byClass(SCHEDULER_MESSAGES, SchedulerMessages),
  byClass(WORKER_STATUS, WorkerStatusTracker),
  byClass(WORKER_DESCRIPTION, WorkerDescription),
  byClass(WORKER_INSPECTION, WorkerInspection),

  // Peers and clients.
  byClass(PEER_CHANNELS, PeerChannels),
  byClass(PEER_REQUESTS, PeerRequests),
  byClass(WORKER_SERVING, WorkerServing),

  // Memory and plugins.
  byClass(MEMORY_REACTIONS, MemoryReactions),
  byClass(WORKER_PLUGINS, WorkerPlugins),

  // Start and end.
  byClass(CLOSER, Closer),
  byClass(WORKER_ENDING, WorkerEnding),
  byClass(WORKER_LIFE, WorkerLife),
  byClass(HOSTED_WORKER, HostedWorker),
];
