import { YardmasterError } from '../api/errors.ts';
import type { PeerRole } from '../api/transport.ts';
import { type Access, REQUESTS, ruleOf } from '../messages/operations.ts';
import type { Role, SchedulerRequests } from '../messages/protocol.ts';
import { show } from '../shared/words.ts';

// A key is undefined where the connection is within the process, or where there are no keys: then all is permitted.

/** The roles as which the holder of each kind of key may introduce itself. */
const MAY_BE: Readonly<Record<PeerRole, readonly Role[]>> = {
  worker: ['worker'],
  client: ['client'],
  admin: ['client'],
  viewer: ['client'],
  data: [],
};

/** The keys that permit what is open from a least key on. */
const PERMITTING: Readonly<Record<Access, readonly PeerRole[]>> = {
  any: ['worker', 'viewer', 'client', 'admin', 'data'],
  worker: ['worker', 'admin'],
  viewer: ['viewer', 'client', 'admin'],
  client: ['client', 'admin'],
  admin: ['admin'],
};

/** @throws YardmasterError `ERR_ACCESS` */
export function checkHello(key: PeerRole | undefined, role: Role): void {
  if (key === undefined || MAY_BE[key].includes(role)) return;
  throw forbidden(key, `be a ${role}`);
}

/**
 * Checks a message of a client on its stream. One that does not exist is not refused here.
 * @throws YardmasterError `ERR_ACCESS`
 */
export function checkReport(key: PeerRole | undefined, op: string): void {
  if (key !== 'viewer' || ruleOf(op)?.sender === 'viewer') return;
  throw forbidden(key, `send ${show(op)}`);
}

/**
 * Checks a request.
 * @param command - the name of the command, and the least key that permits it
 * @throws YardmasterError `ERR_ACCESS`
 */
export function checkQuestion(
  key: PeerRole | undefined,
  method: keyof SchedulerRequests,
  command?: { readonly name: string; readonly access: Access },
): void {
  if (key === undefined) return;
  if (!PERMITTING[REQUESTS[method]].includes(key)) throw forbidden(key, method);
  if (command !== undefined && !PERMITTING[command.access].includes(key)) {
    throw forbidden(key, `run the command ${show(command.name)}`);
  }
}

function forbidden(key: PeerRole, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_ACCESS',
    `the key of a ${key} does not permit to ${what}; use the access file of another role`,
    { role: key },
  );
}
