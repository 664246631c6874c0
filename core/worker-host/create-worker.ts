import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import type { WorkerPluginDefinition } from '../api/local-plugins.ts';
import { byFactory, byValue, type Provider } from '../api/token.ts';
import { LogBook } from '../host/log.ts';
import { checkExecutor } from '../plugin-host/contracts.ts';
import {
  Container,
  type ProvidingPlugin,
  replaceForPlugins,
  replaceForProgram,
} from '../plugin-host/injection.ts';
import { CLOCK, LOGGER, SERVER_ID } from '../host/tokens.ts';
import { localEntry } from '../plugin-host/plugin-host.ts';
import { resolverIn } from '../plugin-host/module-files.ts';
import { listenBy } from '../shared/channels.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { DataServer, PeerRequests } from './data-server.ts';
import { MemoryReactions } from './memory-reactions.ts';
import { NETWORK, type Network, transportFor } from './peer-channels.ts';
import { EXECUTOR, PEER_LISTENER, WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { HostedWorker, WorkerHost } from './worker-host.ts';
import { WorkerLife } from './worker-life.ts';
import { identityOf, kernelSettings, type WorkerHostOptions } from './worker-options.ts';

export type { HostedWorker } from './worker-host.ts';
export type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** The parts of a worker besides its collaborators. */
const WORKER_MODULE: readonly Provider[] = [
  byFactory(WorkerKernel, (services) => {
    const identity = services.get(WORKER_IDENTITY);
    return new WorkerKernel(kernelSettings(services.get(WORKER_OPTIONS), identity));
  }),
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
  const log = new LogBook(options.log, clock, inspect);
  const network: Network = { clock, transports, connectTimeoutMs };
  const container = new Container().register([
    byValue(CLOCK, clock),
    byValue(LOGGER, log),
    byValue(LogBook, log),
    byValue(WORKER_OPTIONS, options),
    byValue(EXECUTOR, executor),
    byValue(NETWORK, network),
    byValue(SERVER_ID, serverId),
    ...WORKER_MODULE,
  ]);
  replaceForProgram(container, REPLACEABLE, options.provide);
  replaceForPlugins(container, REPLACEABLE, await providingPlugins(options), options.provide);
  const server = container.get(DataServer);
  const transport = transportFor(network, listenAddress);
  const listener = await listenBy(transport, listenAddress, (peer) => server.accept(peer));
  let life: WorkerLife;
  try {
    container.register([
      byValue(PEER_LISTENER, listener),
      byValue(WORKER_IDENTITY, identityOf(options, listener.address, serverId)),
    ]);
    for (const connected of [WorkerHost, MemoryReactions, PeerRequests, HostedWorker]) {
      container.get<unknown>(connected);
    }
    life = container.get(WorkerLife);
  } catch (error) {
    await listener.close();
    throw error;
  }
  await life.start();
  return container.get(HostedWorker);
}

/** The plugins of its configuration that replace collaborators. Loads their modules, and sets nothing up. */
async function providingPlugins({
  plugins = [],
  folder = process.cwd(),
}: WorkerHostOptions): Promise<readonly ProvidingPlugin[]> {
  const resolver = resolverIn(folder);
  const providing: ProvidingPlugin[] = [];
  for (const { use, name } of plugins.map(localEntry)) {
    const { exported } = await resolver.resolve(use, 'worker-plugin');
    const { apiVersion, ...definition } = (exported ?? {}) as Partial<WorkerPluginDefinition>;
    const { provide = [], name: ownName = '' } = apiVersion === undefined ? {} : definition;
    providing.push({ name: name ?? ownName, provide });
  }
  return providing;
}
