import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { VERSION } from '../api/plugin.ts';
import type { Connection, IncomingLimits } from '../api/transport.ts';
import { Strangers, STRANGERS_MAX } from '../shared/strangers.ts';
import { setAwakeTimer } from '../shared/timers.ts';

/** The limits for a peer that has not introduced itself. */
const LIMITS: IncomingLimits = { frameBytesMax: 64 * 1024, valuesMax: 512 };

/** Time for a peer to introduce itself. */
const HELLO_TIMEOUT_MS = 5000;

/** The connections whose peers have not introduced themselves: few, short-lived, and tightly limited. */
export class Handshakes {
  private readonly timers = new Map<Connection, Timer>();
  private readonly strangers = new Strangers<Connection>((oldest) => {
    this.refuse(
      oldest,
      `was the oldest of its host, and ${STRANGERS_MAX} had not introduced themselves`,
    );
  });

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
    this.strangers.add(connection, hostIn(connection));
  }

  /** The peer has introduced itself. @param limits - of what it may send from now on; default: those of the transport */
  succeed(connection: Connection, limits?: IncomingLimits): void {
    this.end(connection);
    connection.limitIncoming?.(limits);
  }

  /** The connection is over, or was accepted. Does nothing the second time. */
  end(connection: Connection): void {
    this.timers.get(connection)?.cancel();
    this.timers.delete(connection);
    this.strangers.delete(connection, hostIn(connection));
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

/** The address of the peer without its port. */
function hostIn({ peerAddress }: Connection): string {
  return peerAddress.slice(0, peerAddress.lastIndexOf(':'));
}

/** Versions of Yardmaster and Node that this process runs. */
export function versionsHere(): { readonly yardmaster: string; readonly node: string } {
  return { yardmaster: VERSION, node: process.versions.node };
}
