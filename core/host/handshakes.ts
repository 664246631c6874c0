import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Connection, IncomingLimits } from '../api/transport.ts';
import { setAwakeTimer } from '../shared/awake-timer.ts';

/** What a peer may send before it has introduced itself. */
const LIMITS: IncomingLimits = { frameBytesMax: 64 * 1024, valuesMax: 512 };

/** Time for a peer to introduce itself. */
const HELLO_TIMEOUT_MS = 5000;

/** Connections without a hello; one more ends the oldest, which is the least likely to be in order. */
const OPEN_MAX = 1024;

/** The connections whose peers have not introduced themselves: few, short-lived, and tightly limited. */
export class Handshakes {
  private readonly timers = new Map<Connection, Timer>();

  constructor(private readonly clock: Clock) {}

  /** Connections whose peers have not introduced themselves. */
  get count(): number {
    return this.timers.size;
  }

  /** A connection was accepted. */
  begin(connection: Connection): void {
    connection.limitIncoming?.(LIMITS);
    const timer = setAwakeTimer(this.clock, HELLO_TIMEOUT_MS, () => {
      this.refuse(connection, `did not introduce itself within ${HELLO_TIMEOUT_MS} ms`);
    });
    this.timers.set(connection, timer);
    if (this.timers.size <= OPEN_MAX) return;
    const [oldest] = this.timers.keys();
    if (oldest !== undefined) {
      this.refuse(oldest, `was the oldest of ${OPEN_MAX} that had not introduced themselves`);
    }
  }

  /** The peer has introduced itself. */
  succeed(connection: Connection): void {
    this.end(connection);
    connection.limitIncoming?.(undefined);
  }

  /** The connection is over, or was accepted. Does nothing the second time. */
  end(connection: Connection): void {
    this.timers.get(connection)?.cancel();
    this.timers.delete(connection);
  }

  private refuse(connection: Connection, why: string): void {
    this.end(connection);
    const { peerAddress } = connection;
    connection.abort(
      new YardmasterError('ERR_TIMEOUT', `the connection of ${peerAddress} was ended: it ${why}`, {
        peer: peerAddress,
      }),
    );
  }
}
