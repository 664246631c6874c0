import { type Logger } from '../api/plugin.ts';
import type { Connection, ConnectionHandlers, Listener } from '../api/transport.ts';
import { withTimeout } from '../shared/timers.ts';
import { Handshakes } from '../host/handshakes.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { listenBy } from '../shared/channels.ts';
import { TransportTable } from './transport-table.ts';
import { checkStimulus } from './message-checks.ts';
import { Session, SessionServices } from './session.ts';
import { LocalConnection, type Peer } from './sessions.ts';
import { closedError, Shutdown } from './shutdown.ts';
import type { Ingress } from './tokens.ts';

/** Time for a connection to send what is queued when the scheduler closes. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The addresses at which a scheduler listens, and the end of its connections. */
@collaborator
export class Listeners implements Ingress {
  readonly check = checkStimulus;
  private readonly listeners: Listener[] = [];
  private readonly handshakes: Handshakes;
  private isClosing = false;

  constructor(
    private readonly host: SessionServices,
    private readonly transports: TransportTable,
    private readonly shutdown: Shutdown,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    this.handshakes = new Handshakes(host.clock);
  }

  async listen(address: string): Promise<string> {
    const transport = await this.transports.for(address);
    this.shutdown.checkOpen();
    const listener = await listenBy(transport, address, (connection) => {
      const session = new Session(connection, this.host, this.handshakes);
      if (this.isClosing) connection.abort(closedError());
      return session.handlers;
    });
    this.listeners.push(listener);
    const { sessions } = this.host;
    const { messageBytesMax = Infinity, sharesMemory = false } = listener;
    sessions.addresses.push(listener.address);
    sessions.messageBytesMax = Math.min(sessions.messageBytesMax, messageBytesMax);
    sessions.sharesMemory &&= sharesMemory;
    if (this.isClosing) await listener.close();
    return listener.address;
  }

  connectLocal(from: string, open: (connection: Connection) => ConnectionHandlers): Connection {
    this.shutdown.checkOpen();
    const [here, there] = LocalConnection.pair([from, this.host.serverId]);
    there.attach(new Session(there, this.host).handlers);
    here.attach(open(here));
    return here;
  }

  stopAccepting(): void {
    this.isClosing = true;
  }

  async close(): Promise<void> {
    const { all, workers } = this.host.sessions;
    await Promise.all(this.listeners.map((listener) => this.attempt(() => listener.close())));
    for (const session of workers.values()) {
      session.send({ op: 'close', reason: 'scheduler-close', stimulusId: 'scheduler-close' });
    }
    await Promise.all([...all].map((session) => this.attempt(() => this.closeSession(session))));
  }

  private async closeSession({ channel }: Peer): Promise<void> {
    try {
      await withTimeout(this.host.clock, channel.close(), CLOSE_TIMEOUT_MS, closedError);
    } catch (error) {
      channel.abort(error as Error);
    }
  }

  private async attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.log.warn({ err: error }, 'something failed while the scheduler closed');
    }
  }
}
