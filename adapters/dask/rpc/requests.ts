/** The connections on which Dask's processes ask for something, until one becomes a stream. */
import { YardmasterError } from '../../../core/api/index.ts';
import { ClientBridge } from '../bridge/client-bridge.ts';
import type { Comm } from '../connection/comm.ts';
import type { Fields } from '../context.ts';
import type { BridgeHost } from '../bridge/bridge-host.ts';
import type { NannyStarts } from '../bridge/nanny-starts.ts';
import { isHostOfPeer } from './known-peers.ts';
import { NO_REPLY } from '../connection/no-reply.ts';
import { checkParameters } from './parameters.ts';
import { PythonError, PythonException, uncaughtAnswer } from './py-errors.ts';
import { isFields } from '../codec/values.ts';
import { WorkerBridge } from '../bridge/worker-bridge.ts';

/** Fields of a request that are not for its handler. */
const ENVELOPE: ReadonlySet<string> = new Set(['op', 'reply', 'close']);

/** Answers requests one after the other, until one of them makes a stream of the connection. */
export async function serveRequests(
  comm: Comm,
  host: BridgeHost,
  nannyStarts: NannyStarts,
): Promise<void> {
  comm.trust(() => isHostOfPeer(host, comm));
  try {
    for (;;) {
      const request = await comm.read();
      if (!isFields(request)) continue; // A peer acknowledges some answers with a plain text.
      const { op } = request;
      if (op === undefined) {
        nannyStarts.end(comm); // It says how its start went.
        continue;
      }
      if (op === 'close') {
        await comm.close();
        return;
      }
      if (op === 'register-worker' || op === 'register-client') {
        checkParameters('request', op, request);
        await (op === 'register-worker' ? WorkerBridge : ClientBridge).open(comm, request, host);
        return;
      }
      if (await answer(comm, typeof op === 'string' ? op : '?', request, host)) return;
    }
  } catch (error) {
    if (comm.isClosed) return; // The peer has left, so the answer is dropped.
    host.log.warn({ err: error, peer: comm.peerAddress }, 'a connection of Dask was given up');
    host.fail(comm, error);
  }
}

/** Whether it was the last request of the connection. */
async function answer(comm: Comm, op: string, request: Fields, host: BridgeHost): Promise<boolean> {
  const wantsReply = request['reply'] !== false;
  try {
    const given = await host.operations.request(op)(withoutEnvelope(request), host, comm);
    if (wantsReply && given !== NO_REPLY) comm.write(given ?? null);
  } catch (error) {
    if (!host.isClosing) logFailure(op, comm, error, host);
    if (wantsReply) comm.write(uncaughtAnswer(error));
  }
  if (request['close'] !== true) return false;
  await comm.close();
  return true;
}

function logFailure(op: string, comm: Comm, error: unknown, { log }: BridgeHost): void {
  const isOrdinary = error instanceof PythonException || error instanceof PythonError;
  const fields = { err: error, op, peer: comm.peerAddress };
  const text = `the request ${op} of ${comm.peerAddress} failed: ${(error as Error).message}`;
  if (isOrdinary || YardmasterError.is(error)) log.debug(fields, text);
  else log.error(fields, text);
}

function withoutEnvelope(request: Fields): Fields {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !ENVELOPE.has(name)));
}
