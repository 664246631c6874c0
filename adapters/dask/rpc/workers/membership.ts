import { type DaskContext, type Fields, type RpcTable } from '../../context.ts';
import { textIn } from '../../codec/values.ts';

/** Requests by which workers and nannies register, report and leave. */
export const MEMBERSHIP: RpcTable = {
  heartbeat_worker: (request, context) => {
    const worker = context.workers.get(textIn(request, 'address'));
    if (worker === undefined) return { status: 'missing' };
    worker.heartbeat(request);
    context.tallies.addMetrics(request);
    return {
      status: 'OK',
      time: context.nowS(),
      'heartbeat-interval': context.heartbeatIntervalS(),
    };
  },
  register_nanny: (request, context, comm) => {
    // Since 2023.9 it names itself, and says on this connection when its worker has started.
    if (request['address'] !== undefined) context.nannyStarting(comm);
    return { status: 'OK', 'nanny-plugins': context.nannyPlugins };
  },
  // A nanny says so when the process of its worker has ended, however it did.
  unregister: (request, context) => removeWorker(context, request),
  remove_worker: (request, context) => removeWorker(context, request),
};

function removeWorker(context: DaskContext, request: Fields): 'OK' | 'already-removed' {
  const worker = textIn(request, 'address');
  if (!context.cluster.workers.has(worker)) return 'already-removed';
  const isLeaving = context.cluster.workers.get(worker)?.status.startsWith('clos') === true;
  context.plugin.enqueue({ op: 'remove-worker', worker, expected: isLeaving, close: true });
  return 'OK';
}
