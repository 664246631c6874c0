import type { DaskContext, DaskWorker, Fields, RpcTable } from '../context.ts';
import { numberIn } from '../values.ts';

/** What clients know of a worker. */
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

/** Who is there. */
export const IDENTITY: RpcTable = {
  identity: (request, context) => {
    const { n_workers: limit } = request;
    const count = typeof limit === 'number' && limit >= 0 ? limit : Infinity;
    return schedulerIdentity(context, count);
  },
  echo: ({ data }) => data,
  // Seconds of the clock since when there is nothing to do.
  check_idle: async (_request, { plugin }) => {
    const sinceMs = (await plugin.run('idle-since')) as number | undefined;
    return sinceMs === undefined ? null : sinceMs / 1000;
  },
};

/** What a client asks first, and shows of the cluster. @param workersMax - workers that are told of */
export function schedulerIdentity(context: DaskContext, workersMax = Infinity): Fields {
  const { cluster, workers } = context;
  const told = [...workers.values()].slice(0, workersMax);
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
    workers: new Map(told.map((worker) => [worker.address, workerIdentity(context, worker)])),
  };
}
