import { randomUUID } from 'node:crypto';
import type { WorkerPluginDefinition } from '../api/local-plugins.ts';
import { byClass, byFactory, byValue, type Provider } from '../api/token.ts';
import { LogBook } from '../host/log.ts';
import { checkExecutor } from '../plugin-host/contracts.ts';
import {
  CLOCK,
  Container,
  LOGGER,
  type ProvidingPlugin,
  replaceForPlugins,
  replaceForProgram,
} from '../plugin-host/injection.ts';
import { localEntry } from '../plugin-host/local-plugins.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { DATA_SERVER, DataServer, PEER_REQUESTS, PeerRequests } from './data-server.ts';
import { MEMORY_REACTIONS, MemoryReactions } from './memory-reactions.ts';
import {
  NETWORK,
  type Network,
  PEER_CHANNELS,
  PeerChannels,
  transportFor,
} from './peer-channels.ts';
import { SCHEDULER_MESSAGES, SchedulerMessages } from './scheduler-messages.ts';
import {
  EXECUTOR,
  PEER_LISTENER,
  SERVER_ID,
  WORKER_IDENTITY,
  WORKER_KERNEL,
  WORKER_LOG,
  WORKER_OPTIONS,
} from './tokens.ts';
import { WORKER_ACTIVITIES, WorkerActivities } from './worker-activities.ts';
import { WORKER_DESCRIPTION, WorkerDescription } from './worker-description.ts';
import { WORKER_ENDING, WorkerEnding } from './worker-ending.ts';
import { HOSTED_WORKER, HostedWorker, WORKER_HOST, WorkerHost } from './worker-host.ts';
import { WORKER_INBOX, WorkerInbox } from './worker-inbox.ts';
import { WORKER_INSPECTION, WorkerInspection } from './worker-inspection.ts';
import { WORKER_LIFE, WorkerLife } from './worker-life.ts';
import { WORKER_LINK, WorkerLink } from './worker-link.ts';
import { WORKER_MEMORY, WorkerMemory } from './worker-memory.ts';
import { identityOf, kernelSettings, type WorkerHostOptions } from './worker-options.ts';
import { WORKER_PLUGINS, WorkerPlugins } from './worker-plugins.ts';
import { Closer, CLOSER, WORKER_SERVING, WorkerServing } from './worker-serving.ts';
import { WORKER_STATUS, WorkerStatusTracker } from './worker-status.ts';

export type { HostedWorker } from './worker-host.ts';
export type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';

const CONNECT_TIMEOUT_MS = 10_000;

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

const REPLACEABLE = { module: WORKER_MODULE };

/**
 * Makes a worker: listens for peers, connects to the scheduler and registers. When that fails nothing is left
 * behind but the executor, which is the caller's until then.
 *
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_PROVIDER`, `ERR_PLUGIN_LOAD`, `ERR_EXECUTOR`
 * @throws RemoteError `ERR_REGISTRATION` when the scheduler refuses
 */
export async function createWorker(options: WorkerHostOptions): Promise<HostedWorker> {
  const { listenAddress, clock, transports, executor } = options;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, serverId = `worker-${randomUUID()}` } = options;
  checkExecutor(executor);
  const log = new LogBook(options.log, clock);
  const network: Network = { clock, transports, connectTimeoutMs };
  const container = new Container().register([
    byValue(CLOCK, clock),
    byValue(LOGGER, log),
    byValue(WORKER_LOG, log),
    byValue(WORKER_OPTIONS, options),
    byValue(EXECUTOR, executor),
    byValue(NETWORK, network),
    byValue(SERVER_ID, serverId),
    ...WORKER_MODULE,
  ]);
  replaceForProgram(container, REPLACEABLE, options.provide);
  replaceForPlugins(container, REPLACEABLE, await providingPlugins(options), options.provide);
  const server = container.get(DATA_SERVER);
  const listener = await transportFor(network, listenAddress).listen(listenAddress, (connection) =>
    server.accept(connection),
  );
  container.register([
    byValue(PEER_LISTENER, listener),
    byValue(WORKER_IDENTITY, identityOf(options, listener.address, serverId)),
  ]);
  for (const connected of [WORKER_HOST, MEMORY_REACTIONS, PEER_REQUESTS]) {
    container.get<unknown>(connected);
  }
  const worker = container.get(HOSTED_WORKER);
  await container.get(WORKER_LIFE).start();
  return worker;
}

/** The plugins of its configuration that replace collaborators. Loads their modules, and sets nothing up. */
async function providingPlugins({
  plugins = [],
  folder = process.cwd(),
}: WorkerHostOptions): Promise<readonly ProvidingPlugin[]> {
  const resolver = new PluginResolver({}, folder);
  const providing: ProvidingPlugin[] = [];
  for (const { use, name } of plugins.map(localEntry)) {
    const { exported } = await resolver.resolve(use, 'worker-plugin');
    const { apiVersion, ...definition } = (exported ?? {}) as Partial<WorkerPluginDefinition>;
    const { provide = [], name: ownName = '' } = apiVersion === undefined ? {} : definition;
    providing.push({ name: name ?? ownName, provide });
  }
  return providing;
}
