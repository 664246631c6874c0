import {
  type Clock,
  type Connection,
  type ConnectionHandlers,
  type GetDataReply,
  PROTOCOL,
  toErrorPayload,
  VERSION,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { refusalBytes, serialise } from '../../tasks/index.ts';
import { Opaque } from '../codec/index.ts';
import type { Comm } from '../connection/comm.ts';
import { CommPool } from '../connection/comm-pool.ts';
import { OWN_ADDRESSES } from '../connection/wrong-port.ts';
import { PythonError } from '../rpc/py-errors.ts';
import { asList, entriesOf, isFields } from '../codec/values.ts';
import { readValue } from './read-value.ts';
import { NotPortable, resultRefused } from './refusal.ts';

/** A worker that sends too much already is asked again after this. */
const BUSY_PAUSE_MS = 100;

/** A worker that sends nothing for this long counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** How to reach a Dask worker. */
interface DaskPeerOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** The error for requests other than those for results. */
  readonly refusal: Error;
}

/**
 * Connects with a Dask worker, and answers in its place as a worker of ours: `get-data` becomes its
 * `get_data`, and results are written anew. One that cannot be is given as its refusal.
 *
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
 */
export async function connectDaskPeer(
  address: string,
  open: (connection: Connection) => ConnectionHandlers,
  options: DaskPeerOptions,
): Promise<Connection> {
  const { clock, timeoutMs } = options;
  const pool = new CommPool({ clock, timeoutMs });
  // Connects now, so that an unreachable peer is noticed before the first request.
  await pool.use(address, () => Promise.resolve());
  return new DaskPeer(address, pool, open, options);
}

class DaskPeer implements Connection {
  readonly bufferedBytes = 0;
  private readonly handlers: ConnectionHandlers;
  private isOver = false;

  constructor(
    readonly peerAddress: string,
    private readonly pool: CommPool,
    open: (connection: Connection) => ConnectionHandlers,
    private readonly options: DaskPeerOptions,
  ) {
    this.handlers = open(this);
  }

  send(...messages: readonly WireMessage[]): void {
    for (const message of messages) {
      // Answered in a microtask, because the caller is not ready for an answer within its call.
      if (message['op'] !== 'request') continue;
      queueMicrotask(() => inBackground(this.answer(message), (error) => this.end(error)));
    }
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.end();
    return Promise.resolve();
  }

  abort(reason: Error): void {
    this.end(reason);
  }

  private end(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.pool.close();
    queueMicrotask(() => {
      if (error === undefined) this.handlers.onClose();
      else this.handlers.onClose(error);
    });
  }

  private async answer({ id, method, parameters }: WireMessage): Promise<void> {
    let reply: WireMessage;
    try {
      const given = isFields(parameters) ? parameters : {};
      reply = { op: 'reply', id, ok: true, value: await this.value(String(method), given) };
    } catch (thrown) {
      if (!(thrown instanceof PythonError) && !YardmasterError.is(thrown, 'ERR_PROTOCOL')) {
        this.end(thrown as Error); // It is gone, or as good as gone.
        return;
      }
      reply = { op: 'reply', id, ok: false, error: toErrorPayload(thrown) };
    }
    if (!this.isOver) this.handlers.onMessages([reply]);
  }

  private value(method: string, parameters: WireMessage): unknown {
    if (method === 'get-data') return this.getData(parameters);
    if (method !== 'hello') throw this.unanswered(method);
    if (parameters['role'] !== 'peer') return this.refuse();
    return { protocol: PROTOCOL, version: VERSION, serverId: this.peerAddress };
  }

  /**
   * If the address is the Dask listener of a Yardmaster scheduler, the error names the addresses at
   * which that scheduler listens for its own peers.
   */
  private async refuse(): Promise<never> {
    const { peerAddress, pool, options } = this;
    const answer = await pool
      .call(peerAddress, OWN_ADDRESSES, {}, { timeoutMs: options.timeoutMs })
      .catch(() => undefined);
    const addresses = asList(answer)?.map(String);
    throw addresses === undefined ? options.refusal : wrongPortError(peerAddress, addresses);
  }

  private async getData({ keys, mayBeBusy }: WireMessage): Promise<GetDataReply> {
    const wanted = (asList(keys) ?? []).map(String);
    for (;;) {
      const answer = await this.pool.use(this.peerAddress, (comm) => ask(comm, wanted));
      if (answer['status'] === 'OK') return replyOf(answer['data']);
      if (mayBeBusy === true) return { keys: [], values: [], busy: true };
      await new Promise<void>((resolve) => {
        this.options.clock.setTimer(BUSY_PAUSE_MS, resolve);
      });
    }
  }

  private unanswered(method: string): YardmasterError {
    return new YardmasterError(
      'ERR_PROTOCOL',
      `${this.peerAddress} is a worker of Dask, which does not answer "${method}"; ask it through a client of Dask`,
      { method, worker: this.peerAddress },
    );
  }
}

function wrongPortError(address: string, addresses: readonly string[]): YardmasterError {
  const advice =
    addresses.length === 0
      ? 'this scheduler has no address for them: it listens for Dask only'
      : `connect to ${addresses.join(' or ')}`;
  return new YardmasterError(
    'ERR_PROTOCOL',
    `${address} is where the scheduler listens for workers and clients of Dask, not for those of Yardmaster; ${advice}`,
    { address, seems: 'Dask', addresses },
  );
}

async function ask(comm: Comm, keys: readonly string[]): Promise<WireMessage> {
  const answer = await comm.call('get_data', { keys, who: null }, { timeoutMs: ANSWER_TIMEOUT_MS });
  if (!isFields(answer))
    throw new YardmasterError('ERR_PROTOCOL', 'get_data was answered without results');
  // The worker counts what is on its way, and waits for this.
  if (answer['status'] === 'OK') comm.write('OK');
  return answer;
}

function replyOf(data: unknown): GetDataReply {
  const found = entriesOf(data).map(
    ([key, value]) => [String(key), bytesOf(String(key), value)] as const,
  );
  return { keys: found.map(([key]) => key), values: found.map(([, bytes]) => bytes) };
}

/** A result as Node workers keep it. */
function bytesOf(key: string, value: unknown): Uint8Array {
  try {
    if (!(value instanceof Opaque)) throw new NotPortable('a value without a header');
    return serialise(readValue(value));
  } catch (thrown) {
    if (!(thrown instanceof NotPortable)) throw thrown;
    return refusalBytes(resultRefused(thrown, key, ['Python', 'JavaScript']));
  }
}
