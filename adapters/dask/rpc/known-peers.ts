import type { Comm } from '../connection/comm.ts';
import { parseDaskAddress } from '../connection/address.ts';
import type { DaskContext } from '../context.ts';
import { PythonException } from './py-errors.ts';

/**
 * True when a client or worker is registered from the host of the peer: they ask and answer on connections of their
 * own as well, which do not say whose they are. O(clients and workers).
 */
export function isHostOfPeer(
  { clients, workers }: Pick<DaskContext, 'clients' | 'workers'>,
  comm: Pick<Comm, 'peerAddress'>,
): boolean {
  const { host } = parseDaskAddress(comm.peerAddress);
  for (const client of clients.values()) {
    if (parseDaskAddress(client.peerAddress).host === host) return true;
  }
  for (const worker of workers.values()) {
    if (parseDaskAddress(worker.address).host === host) return true;
  }
  return false;
}

/**
 * Refuses what a peer wants Python to unpickle, which is to run code, unless a client is registered from the same
 * host: Dask's clients ask for it on connections of their own, which do not say whose they are.
 * @param comm - undefined: Python beside the scheduler asks, which runs already
 * @throws PythonException `OSError`
 */
export function requireClient(
  { clients }: Pick<DaskContext, 'clients'>,
  comm: Pick<Comm, 'peerAddress'> | undefined,
  what: string,
): void {
  if (comm === undefined) return;
  const { host } = parseDaskAddress(comm.peerAddress);
  for (const client of clients.values()) {
    if (parseDaskAddress(client.peerAddress).host === host) return;
  }
  throw new PythonException(
    'OSError',
    `${what} is for registered clients, and none is registered from ${host}`,
  );
}
