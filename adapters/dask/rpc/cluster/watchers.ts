/** Deployments that follow which workers there are. */
import { NO_REPLY } from '../../connection/no-reply.ts';
import type { Comm } from '../../connection/comm.ts';
import type { DaskContext, DaskExtension, Fields } from '../../context.ts';
import { schedulerIdentity, workerIdentity } from './identity.ts';

/** `subscribe_worker_status`: a snapshot, then what changes. */
export function makeWatchers(context: DaskContext): DaskExtension {
  const { plugin } = context;
  const watchers = new Set<Comm>();
  const tell = (message: unknown): void => {
    for (const comm of watchers) {
      if (comm.isClosed) watchers.delete(comm);
      else comm.send(message);
    }
  };
  // Peers know the workers of Dask only, and complain of the end of others.
  const shown = new Set(context.workers.keys());
  const onRemoved = ({ address }: { readonly address: string }): void => {
    if (shown.delete(address)) tell(['remove', address]);
  };
  plugin.events.on('worker-removed', onRemoved);
  return {
    rpc: {
      subscribe_worker_status: (_request, _context, comm) => {
        const identity = schedulerIdentity(context);
        const workers = identity['workers'] as ReadonlyMap<string, Fields>;
        const described = new Map(
          [...workers].map(([address, worker]) => [address, brief(worker)]),
        );
        comm.write({ ...identity, workers: described });
        watchers.add(comm);
        return NO_REPLY;
      },
    },
    workerJoined: (worker) => {
      shown.add(worker.address);
      const added = new Map([[worker.address, brief(workerIdentity(context, worker))]]);
      tell(['add', { workers: added }]);
    },
    close: () => plugin.events.off('worker-removed', onRemoved),
  };
}

function brief(identity: Fields): Fields {
  const fields = Object.entries(identity);
  return Object.fromEntries(fields.filter(([name]) => name !== 'metrics' && name !== 'last_seen'));
}
