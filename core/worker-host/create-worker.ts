import { randomUUID } from 'node:crypto';
import type { WorkerPluginDefinition } from '../api/local-plugins.ts';
import { byValue } from '../api/token.ts';
import { LogBook } from '../host/log-book.ts';
import { checkExecutor } from '../plugin-host/contracts.ts';
import { Container } from '../plugin-host/injection/container.ts';
import {
  type ProvidingPlugin,
  replaceForPlugins,
  replaceForProgram,
} from '../plugin-host/injection/replacements.ts';
import { PluginResolver } from '../plugin-host/loading/plugin-resolver.ts';
import { localEntry } from '../plugin-host/local-plugins.ts';
import { CLOCK, LOGGER } from '../plugin-host/injection/tokens.ts';
import { DATA_SERVER } from './serving/data-server.ts';
import { MEMORY_REACTIONS } from './memory/memory-reactions.ts';
import { WORKER_MODULE } from './module.ts';
import { NETWORK, type Network, transportFor } from './peer-channels.ts';
import { PEER_REQUESTS } from './serving/peer-requests.ts';
import { HOSTED_WORKER, type HostedWorker } from './hosted-worker.ts';
import {
  EXECUTOR,
  PEER_LISTENER,
  SERVER_ID,
  WORKER_IDENTITY,
  WORKER_LOG,
  WORKER_OPTIONS,
} from './tokens.ts';
import { WORKER_HOST } from './worker-host.ts';
import { WORKER_LIFE } from './worker-life.ts';
import { identityOf, type WorkerHostOptions } from './worker-options.ts';

export type { HostedWorker } from './hosted-worker.ts';
export type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';

const CONNECT_TIMEOUT_MS = 10_000;
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
