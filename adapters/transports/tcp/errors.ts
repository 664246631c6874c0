import { YardmasterError } from '../../../core/api/index.ts';

/** The same error, with the peer in its message and data. */
export function ofPeer(peer: string, error: YardmasterError): YardmasterError {
  return new YardmasterError(
    error.code,
    `connection with ${peer}: ${error.message}`,
    { ...error.data, peer },
    { cause: error },
  );
}

/** An established connection broke. */
export function brokenError(peer: string, cause: NodeJS.ErrnoException): YardmasterError {
  const reason =
    cause.code === 'ECONNRESET' || cause.code === 'EPIPE'
      ? 'the peer reset it: its process ended, or it dropped the connection'
      : cause.message;
  return new YardmasterError(
    'ERR_CLOSED',
    `connection with ${peer}: ${reason}${codeText(cause.code)}`,
    { peer, cause: cause.code },
    { cause },
  );
}

/** The peer has begun a frame and does not go on with it. */
export function stalledFrameError(peer: string, nbytes: number, withinMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `connection with ${peer}: a frame has begun, and ${nbytes} bytes of it came within ${withinMs / 1000} s; the peer stands still, or keeps memory occupied`,
    { peer, nbytes },
  );
}

/** The other side let a close stand still. */
export function stuckError(peer: string, timeoutMs: number, nbytes: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `connection with ${peer}: it did not close in good order, because the peer stood still for ${timeoutMs} ms; ${nbytes} bytes are unsent`,
    { peer, timeoutMs, nbytes },
  );
}

/**
 * `connect` failed before the peer was known to be one of ours: `ERR_ACCESS` when one of the two sides does not accept the
 * credentials of the other, else `ERR_CONNECT`.
 */
export function connectError(address: string, cause: Error): YardmasterError {
  const code = systemCode(cause);
  const refusal = REFUSED_CREDENTIALS.get(code);
  const [reason, advice] = refusal ??
    CONNECT_FAILURES.get(code) ?? [cause.message, adviceAt(address, code)];
  return new YardmasterError(
    refusal === undefined && code !== 'ERR_ACCESS' ? 'ERR_CONNECT' : 'ERR_ACCESS',
    `cannot connect to ${address}: ${reason}${codeText(code)}; ${advice}`,
    { address, cause: code },
    { cause },
  );
}

/** A listener with TLS closes, without a reason, what does not begin with a handshake, and what has another certificate. */
function adviceAt(address: string, code: string | undefined): string {
  if (code !== 'ERR_CLOSED') return 'check host and port';
  return address.startsWith('tcp:')
    ? `check host and port; if it listens with encryption, connect to ${address.replace('tcp:', 'tls:')}`
    : 'check host and port, and that its authority has signed the certificate of this side';
}

/** The error of an attempt to connect without an answer in time. */
export function connectTimeoutError(address: string, timeoutMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_CONNECT',
    `cannot connect to ${address}: no answer within ${timeoutMs} ms; check that the host is up, that no firewall drops the connection and that a Yardmaster process listens there, or raise connectTimeoutMs`,
    { address, timeoutMs },
  );
}

export function listenError(address: string, cause: Error): YardmasterError {
  const code = systemCode(cause);
  const [reason, advice] = LISTEN_FAILURES.get(code) ?? [cause.message, 'check host and port'];
  return new YardmasterError(
    'ERR_CONNECT',
    `cannot listen on ${address}: ${reason}${codeText(code)}; ${advice}`,
    { address, cause: code },
    { cause },
  );
}

/** A connection that came in, and then nothing. */
export function silentError(timeoutMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `the peer connected, but did not say within ${timeoutMs} ms that it speaks the protocol of Yardmaster`,
    { timeoutMs },
  );
}

/** With several addresses behind a name, Node reports one error that holds the others. */
function systemCode(cause: Error): string | undefined {
  const { code } = cause as NodeJS.ErrnoException;
  if (code !== undefined || !(cause instanceof AggregateError)) return code;
  return (cause.errors[0] as NodeJS.ErrnoException | undefined)?.code;
}

/** The reason of a failure, and what to do about it. */
type Explanation = readonly [reason: string, advice: string];

const UNKNOWN_HOST: Explanation = [
  'the name of the host is unknown',
  'check its spelling, or give its IP address',
];
const UNREACHABLE: Explanation = [
  'the host cannot be reached',
  'check the network and the address',
];
const RESET: Explanation = [
  'it was reset at once',
  'check that a Yardmaster process listens there',
];
const WRONG_KEY: Explanation = [
  'it does not accept the key of this side',
  'use the access file of this cluster (--access FILE, YARDMASTER_ACCESS)',
];
const TOO_MANY_FILES: Explanation = [
  'this process has too many open files',
  'raise its limit (ulimit -n)',
];

const OTHER_AUTHORITY: Explanation = [
  'the authority of this side has not signed its certificate',
  'use certificates of one authority on both sides',
];

const REFUSED_CREDENTIALS: ReadonlyMap<string | undefined, Explanation> = new Map([
  ['ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC', WRONG_KEY],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY', WRONG_KEY],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', WRONG_KEY],
  ['SELF_SIGNED_CERT_IN_CHAIN', OTHER_AUTHORITY],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', OTHER_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', OTHER_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', OTHER_AUTHORITY],
  ['CERT_SIGNATURE_FAILURE', OTHER_AUTHORITY],
  ['CERT_HAS_EXPIRED', ['its certificate has expired', 'replace it; the files are read again']],
]);

const CONNECT_FAILURES: ReadonlyMap<string | undefined, Explanation> = new Map([
  [
    'ERR_SSL_WRONG_VERSION_NUMBER',
    ['it does not speak TLS', 'use tcp:// if it listens without encryption'],
  ],
  [
    'ECONNREFUSED',
    [
      'the connection was refused, so no process listens there',
      'start the process, or check the port',
    ],
  ],
  ['ENOTFOUND', UNKNOWN_HOST],
  ['EAI_AGAIN', UNKNOWN_HOST],
  ['EHOSTUNREACH', UNREACHABLE],
  ['ENETUNREACH', UNREACHABLE],
  ['EADDRNOTAVAIL', UNREACHABLE],
  [
    'ETIMEDOUT',
    ['the host did not answer', 'check that it is up and that no firewall is in the way'],
  ],
  ['ECONNRESET', RESET],
  ['EPIPE', RESET],
  ['EMFILE', TOO_MANY_FILES],
  ['ENFILE', TOO_MANY_FILES],
]);

const LISTEN_FAILURES: ReadonlyMap<string | undefined, Explanation> = new Map([
  [
    'EADDRINUSE',
    ['another process listens there', 'end it, take another port, or port 0 for a free one'],
  ],
  [
    'EADDRNOTAVAIL',
    ['this machine does not have the address', 'use one of its addresses, or 127.0.0.1'],
  ],
  ['EACCES', ['the port is reserved', 'take one from 1024 on']],
  ['ENOTFOUND', UNKNOWN_HOST],
  ['EAI_AGAIN', UNKNOWN_HOST],
  ['EMFILE', TOO_MANY_FILES],
]);

function codeText(code: string | undefined): string {
  return code === undefined ? '' : ` (${code})`;
}
