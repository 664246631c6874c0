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

/** Of these, connections from one host; one more ends the oldest of that host. */
const OPEN_OF_HOST_MAX = 512;

/** The connections whose peers have not introduced themselves: few, short-lived, and tightly limited. */
export class Handshakes {
  private readonly timers = new Map<Connection, Timer>();
  private readonly byHost = new Map<string, Set<Connection>>();

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
    const ofHost = this.ofHost(connection);
    ofHost.add(connection);
    if (ofHost.size > OPEN_OF_HOST_MAX) this.refuseOldest(ofHost, OPEN_OF_HOST_MAX, ' of its host');
    if (this.timers.size > OPEN_MAX) this.refuseOldest(this.timers.keys(), OPEN_MAX, '');
  }

  /** The peer has introduced itself. */
  succeed(connection: Connection): void {
    this.end(connection);
    connection.limitIncoming?.(undefined);
  }

  /** The connection is over, or was accepted. Does nothing the second time. */
  end(connection: Connection): void {
    this.timers.get(connection)?.cancel();
    if (!this.timers.delete(connection)) return;
    const ofHost = this.ofHost(connection);
    ofHost.delete(connection);
    if (ofHost.size === 0) this.byHost.delete(hostIn(connection));
  }

  private ofHost(connection: Connection): Set<Connection> {
    const host = hostIn(connection);
    const known = this.byHost.get(host) ?? new Set();
    this.byHost.set(host, known);
    return known;
  }

  private refuseOldest(connections: Iterable<Connection>, max: number, where: string): void {
    for (const oldest of connections) {
      this.refuse(oldest, `was the oldest of ${max}${where} that had not introduced themselves`);
      return;
    }
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
