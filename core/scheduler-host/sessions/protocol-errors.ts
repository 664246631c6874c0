import { YardmasterError } from '../../api/errors.ts';
import { VERSION } from '../../api/version.ts';
import { PROTOCOL } from '../../messages/protocol.ts';

/** Errors of a connection that say the peer is wrong, and not merely gone. */
const BREACHES = ['ERR_PROTOCOL', 'ERR_FRAME'];

export function isBreach(error: Error | undefined): error is YardmasterError {
  return YardmasterError.is(error) && BREACHES.includes(error.code);
}

/** @param what - "a message without op" */
export function violation(what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the peer sent ${what}`, { what });
}

export function otherProtocol(peer: string, protocol: string, version: string): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `${peer} speaks ${protocol} (version ${version}), this scheduler ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
    { field: 'protocol', theirs: protocol, ours: PROTOCOL },
  );
}

/** The error that is reported for a connection which the scheduler closes because of a message. */
export function closedOn(peer: string, cause: unknown): YardmasterError {
  const closed = `closed the connection to ${peer}`;
  if (YardmasterError.is(cause, 'ERR_PROTOCOL')) {
    const data = { ...cause.data, peer };
    return new YardmasterError('ERR_PROTOCOL', `${closed}: ${cause.message}`, data, { cause });
  }
  const message = `${closed}, whose message could not be handled: ${String(cause)}`;
  return new YardmasterError('ERR_PROTOCOL', message, { peer }, { cause });
}
