import type { MessagePort } from 'node:worker_threads';
import {
  type Connection,
  toErrorPayload,
  type Transport,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { FRAME_BYTES_MAX, MsgpackCodec } from '../../codecs/msgpack/index.ts';
import type { IntoTunnel, OutOfTunnel } from './messages.ts';
import { type Reference, refer, referencesIn } from './references.ts';
import { buffersOf, type TunnelRequest } from './tunnel-transport.ts';

/**
 * Opens a connection for another thread, and forwards messages in both directions. When the thread
 * ends, the connection ends too. Never throws: a failure to connect is reported through the port.
 *
 * @param transports - of the worker
 */
export function relayConnection(
  { address, timeoutMs, role, port }: TunnelRequest,
  transports: readonly Transport[],
): void {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(address)?.[1];
  const transport = transports.find((candidate) => candidate.scheme === scheme);
  const connecting =
    transport === undefined
      ? Promise.reject(noTransport(address, transports))
      : transport.connect(address, (connection) => new Relay(connection, port), {
          timeoutMs,
          role,
        });
  connecting.catch((error: unknown) => {
    port.postMessage({ op: 'failed', error: toErrorPayload(error) } satisfies OutOfTunnel);
    port.close();
  });
}

/** Bytes after which the other thread is sent a report at once. */
const REPORTED_BYTES = 64 * 1024;
/** Milliseconds for which fewer wait for a message that takes the report along, such as the answer to a request. */
const REPORT_DELAY_MS = 20;

class Relay {
  private readonly codec = new MsgpackCodec(FRAME_BYTES_MAX, { isSharing: true });
  private isOver = false;
  /** Bytes that have left since the last report. */
  private takenBytes = 0;
  private reportTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly port: MessagePort,
  ) {
    port.on('message', (message: IntoTunnel) => this.pass(message));
    port.on('close', () => this.onPortClosed());
    const { peerAddress, sharesMemory = false } = connection;
    this.post({ op: 'opened', peerAddress, sharesMemory });
  }

  onMessages(batch: readonly WireMessage[]): void {
    const messages = batch.map((message) => this.codec.encode(message));
    const taken = this.takenBytes;
    this.takenBytes = 0;
    const references = referencesIn(batch);
    this.post({ op: 'messages', messages, taken, references }, buffersOf(messages));
  }

  onClose(error?: Error): void {
    this.isOver = true;
    this.post({ op: 'closed', ...(error === undefined ? {} : { error: toErrorPayload(error) }) });
    this.port.close();
  }

  private pass(message: IntoTunnel): void {
    const { connection } = this;
    if (this.isOver) return;
    if (message.op === 'send') this.send(message.messages, message.references);
    else if (message.op === 'close') {
      inBackground(connection.close(), (error) => connection.abort(error));
    } else connection.abort(new YardmasterError('ERR_CLOSED', message.reason));
  }

  private send(encoded: readonly Uint8Array[], references: readonly Reference[] | undefined): void {
    const { connection, codec } = this;
    const nbytes = encoded.reduce((sum, bytes) => sum + bytes.byteLength, 0);
    const messages = encoded.map((bytes) => codec.decode(bytes, true) as WireMessage);
    refer(messages, references);
    connection.send(...messages);
    const drained = connection.drained().then(() => {
      this.takenBytes += nbytes;
      if (this.takenBytes >= REPORTED_BYTES) this.reportTaken();
      else this.reportTimer ??= setTimeout(() => this.reportTaken(), REPORT_DELAY_MS).unref();
    });
    inBackground(drained, (error) => connection.abort(error));
  }

  private reportTaken(): void {
    this.reportTimer = undefined;
    const nbytes = this.takenBytes;
    this.takenBytes = 0;
    if (nbytes > 0 && !this.isOver) this.post({ op: 'taken', nbytes });
  }

  private onPortClosed(): void {
    if (this.isOver) return;
    this.connection.abort(new YardmasterError('ERR_CLOSED', 'the thread of the task ended'));
  }

  private post(message: OutOfTunnel, moved: ArrayBuffer[] = []): void {
    this.port.postMessage(message, moved);
  }
}

function noTransport(address: string, transports: readonly Transport[]): YardmasterError {
  const known = transports.map(({ scheme }) => `${scheme}://`).join(', ');
  return new YardmasterError(
    'ERR_CONNECT',
    `this worker has no transport for ${address}; it has ${known}`,
    { address },
  );
}
