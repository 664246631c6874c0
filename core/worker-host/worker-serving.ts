import type { Clock } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import type { Listener } from '../api/transport.ts';
import { withTimeout } from '../shared/timers.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import { DataServer } from './data-server.ts';
import { PeerChannels } from './peer-channels.ts';
import { PEER_LISTENER } from './tokens.ts';

/** Time for what is queued to leave when a worker closes. */
const CLOSE_TIMEOUT_MS = 5000;

/** Closes one part after the other; one that cannot be closed is named in the log. */
@collaborator
export class Closer {
  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Never rejects, and takes five seconds at most. */
  async attempt(what: string, close: () => Promise<void>): Promise<void> {
    try {
      await withTimeout(this.clock, close(), CLOSE_TIMEOUT_MS, () => {
        return new YardmasterError('ERR_TIMEOUT', `closing ${what} took too long`);
      });
    } catch (error) {
      this.log.warn(
        { err: error },
        `${what} could not be closed in good order: ${messageOf(error)}`,
      );
    }
  }
}

/** The side of a worker that is turned to its peers: what listens, gives and asks. */
@collaborator
export class WorkerServing {
  constructor(
    @inject(PEER_LISTENER) private readonly listener: Listener,
    private readonly server: DataServer,
    private readonly peers: PeerChannels,
    private readonly closer: Closer,
  ) {}

  /** The address at which peers reach it. */
  get address(): string {
    return this.listener.address;
  }

  /** Connections with peers and clients, and what goes over them now. */
  connections(): Readonly<Record<'incoming' | 'outgoing' | 'sending', number>> {
    const { open, sending } = this.server.counts;
    return { incoming: open, outgoing: this.peers.count, sending };
  }

  /** Stops. Queued messages still leave, unless it stops because of an error. Never rejects. */
  async stop(error: Error | undefined): Promise<void> {
    const { listener, server, peers, closer } = this;
    peers.abort();
    await closer.attempt('the listener', () => listener.close());
    if (error === undefined) await closer.attempt('peers', () => server.close());
    server.abort(error ?? new YardmasterError('ERR_CLOSED', `${this.address} closes`));
  }
}
