import { hostOf } from './translate.ts';
import { type Fields, isFields, numberIn } from './wire/codec.ts';
import { OWN_ADDRESSES } from './wire/wrong-port.ts';
import type { DaskContext, DaskWorker, RpcTable } from './context.ts';
import { workerOf } from './calls.ts';

/** The identity of a worker, for clients. */
export function workerIdentity(context: DaskContext, worker: DaskWorker): Fields {
  const { registration, metrics, name, nanny } = worker;
  const view = context.cluster.workers.get(worker.address);
  const status = view?.status ?? 'closed';
  const extra = registration['extra'];
  return {
    type: 'Worker',
    id: name,
    host: view?.host ?? '',
    resources: registration['resources'] ?? {},
    local_directory: registration['local_directory'] ?? null,
    name,
    nthreads: view?.threadCount ?? numberIn(registration, 'nthreads') ?? 1,
    memory_limit: registration['memory_limit'] ?? 0,
    last_seen: (view?.lastSeenMs ?? 0) / 1000,
    services: registration['services'] ?? {},
    metrics,
    status: status.replace('-', '_'),
    nanny: nanny ?? null,
    ...(typeof extra === 'object' ? extra : {}),
  };
}

/** The workers of the cluster. */
export const IDENTITY: RpcTable = {
  identity: (request, context) => {
    const { n_workers: limit } = request;
    const count = typeof limit === 'number' && limit >= 0 ? limit : Infinity;
    return schedulerIdentity(context, count);
  },
  // Workers and clients of ours that connect to the address for Dask ask this.
  [OWN_ADDRESSES]: async (_request, { plugin }) => {
    const { addresses } = (await plugin.run('identity')) as { readonly addresses: unknown };
    return addresses;
  },
  echo: ({ data }) => data,
  host_info: (_request, context) => hostInfo(context),
  get_worker_service_addr: (request, context) => serviceAddress(request, context),
  // Seconds of the clock since when there is nothing to do.
  check_idle: async (_request, { plugin }) => {
    const sinceMs = (await plugin.run('idle-since')) as number | undefined;
    return sinceMs === undefined ? null : sinceMs / 1000;
  },
};

/** The figures of each host, from the workers on it. */
function hostInfo({ cluster, workers }: DaskContext): Map<string, Fields> {
  const hosts = new Map<string, { addresses: string[]; nthreads: number; 'last-seen': number }>();
  for (const address of workers.keys()) {
    const view = cluster.workers.get(address);
    if (view === undefined) continue;
    const known = hosts.get(view.host) ?? { addresses: [], nthreads: 0, 'last-seen': 0 };
    hosts.set(view.host, known);
    known.addresses.push(address);
    known.nthreads += view.threadCount;
    known['last-seen'] = Math.max(known['last-seen'], view.lastSeenMs / 1000);
  }
  return hosts;
}

/**
 * (host, port) of a service of a worker, or a URL with `protocol`; None when the worker has no
 * service of that name.
 */
function serviceAddress(request: Fields, context: DaskContext): unknown {
  const { address, registration } = workerOf(context, request['worker']);
  const { service_name: name, protocol } = request;
  const services = isFields(registration['services']) ? registration['services'] : {};
  const port = Object.hasOwn(services, String(name)) ? services[String(name)] : undefined;
  if (port === undefined || port === null) return null;
  const host = hostOf(address);
  return typeof protocol === 'string' && protocol !== ''
    ? `${protocol}://${host}:${String(Number(port))}`
    : [host, port];
}

/**
 * The answer to a client's first request, and the data of its cluster display. @param workersMax -
 * upper bound of the workers listed
 */
export function schedulerIdentity(context: DaskContext, workersMax = Infinity): Fields {
  const { cluster, workers } = context;
  const listed = [...workers.values()].slice(0, workersMax);
  let memory = 0;
  for (const worker of cluster.workers.values()) memory += worker.memoryLimitBytes;
  return {
    type: 'Scheduler',
    id: context.id,
    address: context.address,
    services: context.services,
    started: context.startedS,
    n_workers: workers.size,
    total_threads: cluster.totalThreads,
    total_memory: memory,
    workers: new Map(listed.map((worker) => [worker.address, workerIdentity(context, worker)])),
  };
}
