import { YardmasterError } from '../../api/errors.ts';
import type { WireMessage } from '../../api/transport.ts';
import { hint } from '../../shared/words.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { WorkerState } from '../../state/task.ts';
import type { Sessions } from '../sessions/sessions.ts';

/** Who is asked, and by which connections. */
export interface Asked {
  readonly cluster: ClusterState;
  readonly sessions: Sessions;
}

/** What each worker answered, by address; `error` where one did not. */
export type Answers<T = Readonly<Record<string, unknown>>> = readonly (readonly [
  address: string,
  answer: T | { readonly error: string },
])[];

/**
 * Asks workers in parallel. A worker that does not answer in time does not delay the result: its
 * entry is the error.
 *
 * @param timeoutMs - Infinity: as long as the worker is connected
 */
export function askWorkers<T>(
  asked: Asked,
  workers: readonly WorkerState[],
  request: { readonly method: string; readonly parameters: WireMessage },
  timeoutMs: number,
): Promise<Answers<T>> {
  return Promise.all(
    workers.map(async ({ address }) => {
      try {
        return [address, await askWorker<T>(asked, address, request, timeoutMs)] as const;
      } catch (error) {
        return [address, { error: (error as Error).message }] as const;
      }
    }),
  );
}

/** @throws YardmasterError `ERR_CLOSED`, `ERR_TIMEOUT`; RemoteError what the worker threw */
export async function askWorker<T>(
  asked: Asked,
  address: string,
  { method, parameters }: { readonly method: string; readonly parameters: WireMessage },
  timeoutMs: number,
): Promise<T> {
  const channel = asked.sessions.channelOf(address);
  if (channel !== undefined) return channel.request<T>(method, parameters, timeoutMs);
  throw new YardmasterError('ERR_CLOSED', `the worker ${address} is not connected`, { address });
}

/**
 * The workers with these names; all, when no name is given.
 * @param named - addresses, names or hosts
 * @throws YardmasterError `ERR_NO_WORKER` when no worker has one of the names
 */
export function workersNamed(
  { workersByRank }: ClusterState,
  named: readonly string[] | undefined,
): readonly WorkerState[] {
  if (named === undefined) return workersByRank;
  const chosen = new Set<WorkerState>();
  for (const name of named) {
    const found = workersByRank.filter(({ address, name: its, identity }) => {
      return name === address || name === its || name === identity.host;
    });
    for (const worker of found) chosen.add(worker);
    if (found.length > 0) continue;
    const known = workersByRank.map((worker) => worker.name);
    throw new YardmasterError(
      'ERR_NO_WORKER',
      `there is no worker "${name}"${hint(name, known)}; there are ${known.join(', ') || 'none'}`,
      { worker: name },
    );
  }
  return [...chosen];
}
