/** Deployments that follow which workers there are. */
import { NO_REPLY } from '../no-reply.ts';
import type { Comm } from '../comm.ts';
import type { DaskContext, DaskExtension, Fields } from '../context.ts';
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
  const onAdded = ({ address }: { readonly address: string }): void => {
    // It is known to the front one turn later.
    queueMicrotask(() => {
      const worker = context.workers.get(address);
      if (worker === undefined) return;
      tell(['add', { workers: new Map([[address, brief(workerIdentity(context, worker))]]) }]);
    });
  };
  const onRemoved = ({ address }: { readonly address: string }): void => tell(['remove', address]);
  plugin.events.on('worker-added', onAdded);
  plugin.events.on('worker-removed', onRemoved);
  return {
    rpc: {
      subscribe_worker_status: (_request, _context, comm) => {
        const identity = schedulerIdentity(context);
        const workers = identity['workers'] as ReadonlyMap<string, Fields>;
        const told = new Map([...workers].map(([address, worker]) => [address, brief(worker)]));
        comm.write({ ...identity, workers: told });
        watchers.add(comm);
        return NO_REPLY;
      },
    },
    close: () => {
      plugin.events.off('worker-added', onAdded);
      plugin.events.off('worker-removed', onRemoved);
    },
  };
}

function brief(identity: Fields): Fields {
  const fields = Object.entries(identity);
  return Object.fromEntries(fields.filter(([name]) => name !== 'metrics' && name !== 'last_seen'));
}
