import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Connection, WireMessage } from '../api/transport.ts';
import { setAwakeTimer } from '../shared/awake-timer.ts';
import { inBackground } from '../shared/background.ts';

/** While more than this waits to be read by a client, its next messages are not handled. */
const ANSWERS_BYTES_MAX = 64 * 1024 * 1024;

/** A client that has more than this to read is disconnected. */
const UNREAD_BYTES_MAX = 1024 * 1024 * 1024;

/** A client that reads nothing for this long, though much waits for it, is disconnected. */
const STALLED_MS = 60_000;

/**
 * Handles the messages of a client in order, and no further ones while the client does not read the
 * answers: few bytes of requests can ask for very many bytes of answers.
 */
export class SlowReader {
  private waiting: readonly WireMessage[] = [];
  private isHeld = false;
  private timer: Timer | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly clock: Clock,
    private readonly handle: (message: WireMessage) => void,
  ) {}

  /** Messages of the client, in order. */
  take(batch: readonly WireMessage[]): void {
    if (this.isHeld) {
      this.waiting = this.waiting.concat(batch);
      return;
    }
    for (let index = 0; index < batch.length; index++) {
      this.handle(batch[index] as WireMessage);
      if (this.connection.bufferedBytes <= ANSWERS_BYTES_MAX) continue;
      this.hold(batch.slice(index + 1));
      return;
    }
  }

  /** Something is to be sent that the client has not asked for. False when the client is disconnected. */
  admits(): boolean {
    const { bufferedBytes } = this.connection;
    if (bufferedBytes <= UNREAD_BYTES_MAX) return true;
    this.disconnect(`has ${bufferedBytes} bytes to read`);
    return false;
  }

  /** The connection is over. */
  close(): void {
    this.timer?.cancel();
    this.waiting = [];
  }

  private hold(rest: readonly WireMessage[]): void {
    this.isHeld = true;
    this.waiting = rest;
    this.connection.holdIncoming?.(true);
    this.watch(this.connection.bufferedBytes);
    const read = this.connection.drained().then(() => this.release());
    inBackground(read, 'the messages of a client that had been slow could not be handled');
  }

  private release(): void {
    this.timer?.cancel();
    const { waiting } = this;
    this.waiting = [];
    this.isHeld = false;
    this.connection.holdIncoming?.(false);
    this.take(waiting);
  }

  private watch(bytesBefore: number): void {
    this.timer = setAwakeTimer(this.clock, STALLED_MS, () => {
      const { bufferedBytes } = this.connection;
      if (bufferedBytes < bytesBefore) this.watch(bufferedBytes);
      else this.disconnect(`read nothing for ${STALLED_MS} ms while answers waited for it`);
    });
  }

  private disconnect(why: string): void {
    const { peerAddress } = this.connection;
    this.connection.abort(
      new YardmasterError('ERR_TIMEOUT', `${peerAddress} was disconnected: it ${why}`, {
        peer: peerAddress,
      }),
    );
  }
}
