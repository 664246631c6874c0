/** Dask's workers, nannies and clients that connect to an address at which Dask's protocol is not served. */
import type { Socket } from 'node:net';

import type { Clock } from '../../../core/api/index.ts';
import { Comm } from './comm.ts';
import { PythonException, uncaughtAnswer } from './py-errors.ts';
import { type Fields, isFields } from './codec.ts';

/** The request that a scheduler of ours answers with its addresses for workers and clients of ours. */
export const OWN_ADDRESSES = 'yardmaster_addresses';

/** A peer that sends nothing for this long is given up. */
const PATIENCE_MS = 10_000;

/**
 * Exchanges introductions with a caller, and answers its requests with an error until it leaves. Workers
 * and clients of Dask raise the error and end.
 * @param socket - may be paused
 * @param messageFor - the text of the error, of the address that was called; asked once, for a caller that
 *   has introduced itself as a peer of Dask
 * @throws YardmasterError `ERR_PROTOCOL`, `ERR_TIMEOUT`, `ERR_CLOSED` when it is no peer of Dask, or leaves
 */
export async function refuseDaskPeer(
  socket: Socket,
  clock: Clock,
  messageFor: (calledAddress: string) => Promise<string>,
): Promise<void> {
  const accepted = Comm.accept(socket, { clock, handshakeTimeoutMs: PATIENCE_MS });
  socket.resume();
  const comm = await accepted;
  const message = await messageFor(comm.localAddress);
  for (;;) {
    const request = await comm.read(PATIENCE_MS);
    // Acknowledgements have no operation.
    if (!isFields(request) || request['op'] === undefined) continue;
    const { op } = request;
    const opensStream = op === 'register-worker' || op === 'register-client';
    const isLast = op === 'close' || request['reply'] === false || request['close'] === true;
    if (op !== 'close' && (opensStream || request['reply'] !== false)) {
      comm.write(answerTo(request, message, clock));
    }
    if (isLast) {
      await comm.close();
      return;
    }
  }
}

function answerTo(request: Fields, message: string, clock: Clock): unknown {
  const { op } = request;
  switch (op) {
    case 'register-worker':
      return { status: 'error', message, time: clock.nowMs() / 1000 };
    case 'register-client':
      return [{ op: 'stream-start', error: message }];
    case 'register_nanny':
      // Nannies from 2023.9 on do not look for an exception here; the worker that they start gets it.
      return request['reply'] === undefined
        ? { status: 'OK', 'nanny-plugins': {} }
        : exceptionOf(message);
    default:
      return exceptionOf(message);
  }
}

function exceptionOf(message: string): unknown {
  // Not an OSError: after those, peers connect again.
  return uncaughtAnswer(new PythonException('RuntimeError', message));
}
