import type { PeerRole, Role } from '../../../core/api/index.ts';

/** What listens: a scheduler, or the data port of a worker. */
export type Serves = 'scheduler' | 'data';

/** Keys that open each kind of listener. */
export const OPENED_BY: Readonly<Record<Serves, readonly PeerRole[]>> = {
  scheduler: ['worker', 'client', 'admin', 'viewer'],
  data: ['data'],
};

/** Keys that a connecting side uses, the most powerful one that it has first. */
export const KEYS_OF: Readonly<Record<Role, readonly PeerRole[]>> = {
  worker: ['worker'],
  client: ['admin', 'client', 'viewer'],
  peer: ['data'],
};

/** Time for a peer to prove who it is. */
export const HANDSHAKE_TIMEOUT_MS = 5000;
