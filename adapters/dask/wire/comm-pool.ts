import {
  asError,
  Channel,
  type ChannelHandlers,
  type Bridge,
  type PluginContext,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { Comm, type ConnectOptions } from './comm.ts';

interface PoolOptions extends Omit<ConnectOptions, 'signal'> {
  /** Idle comms that are kept for each peer. Default 4. */
  readonly idleMax?: number;
}

interface Peer {
  readonly idle: Comm[];
  readonly busy: Set<Comm>;
  readonly connecting: AbortController;
  /** Calls that wait for their comm. */
  borrowers: number;
}

/**
 * Comms for calls to workers and nannies. Each carries one call at a time; those that are free are used
 * again.
 */
export class CommPool {
  private readonly peers = new Map<string, Peer>();
  private isClosed = false;

  constructor(private readonly options: PoolOptions) {}

  /** Comms that are open now. */
  get openCount(): number {
    let count = 0;
    for (const { idle, busy } of this.peers.values()) count += idle.length + busy.size;
    return count;
  }

  /**
   * Calls a handler of a peer.
   * @param parameters - undefined ones are left out
   * @param timeoutMs - for the answer; the comm is given up when it takes longer
   * @throws PythonError when the handler raised; YardmasterError `ERR_CONNECT`, `ERR_CLOSED`, `ERR_TIMEOUT`
   */
  call(
    address: string,
    op: string,
    parameters: Readonly<Record<string, unknown>> = {},
    { timeoutMs = Infinity }: { readonly timeoutMs?: number } = {},
  ): Promise<unknown> {
    return this.use(address, (comm) => comm.call(op, parameters, { timeoutMs }));
  }

  /**
   * Lends a comm for more than a plain call (`get_data` wants an acknowledgement).
   * @param work - nothing may be under way on the comm when it is done. When it throws something that is
   *   not an answer of the peer, the comm is given up.
   * @throws what `work` throws; YardmasterError as `call` does
   */
  async use<T>(address: string, work: (comm: Comm) => Promise<T>): Promise<T> {
    const peer = this.peerAt(address);
    peer.borrowers++;
    let comm: Comm;
    try {
      comm = await this.borrow(address, peer);
      peer.busy.add(comm);
    } finally {
      peer.borrowers--;
      this.forgetIfUnused(address, peer);
    }
    try {
      const result = await work(comm);
      this.giveBack(peer, comm);
      return result;
    } catch (error) {
      if (error instanceof Error && error.name === 'PythonError') this.giveBack(peer, comm);
      else comm.abort(asError(error));
      throw error;
    } finally {
      peer.busy.delete(comm);
      this.forgetIfUnused(address, peer);
    }
  }

  /** The peer is gone: what is under way with it ends with that error. */
  drop(address: string, reason: Error): void {
    const peer = this.peers.get(address);
    if (peer === undefined) return;
    this.peers.delete(address);
    peer.connecting.abort(reason);
    for (const comm of [...peer.idle, ...peer.busy]) comm.abort(reason);
    peer.idle.length = 0;
  }

  close(): void {
    this.isClosed = true;
    const reason = new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    for (const address of [...this.peers.keys()]) this.drop(address, reason);
  }

  private peerAt(address: string): Peer {
    if (this.isClosed) throw new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    let peer = this.peers.get(address);
    if (peer === undefined) {
      peer = { idle: [], busy: new Set(), connecting: new AbortController(), borrowers: 0 };
      this.peers.set(address, peer);
    }
    return peer;
  }

  private async borrow(address: string, peer: Peer): Promise<Comm> {
    for (let comm = peer.idle.pop(); comm !== undefined; comm = peer.idle.pop()) {
      if (!comm.isClosed) return comm;
    }
    const { signal } = peer.connecting;
    try {
      const comm = await Comm.connect(address, { ...this.options, signal });
      if (!signal.aborted) {
        const ended = comm.closed.then(() => this.onEnded(address, peer, comm));
        inBackground(ended, 'the end of a connection could not be noted');
        return comm;
      }
      comm.abort(signal.reason as Error);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    throw signal.reason as Error;
  }

  private onEnded(address: string, peer: Peer, comm: Comm): void {
    const place = peer.idle.indexOf(comm);
    if (place >= 0) peer.idle.splice(place, 1);
    this.forgetIfUnused(address, peer);
  }

  private forgetIfUnused(address: string, peer: Peer): void {
    if (peer.idle.length + peer.busy.size + peer.borrowers > 0) return;
    if (this.peers.get(address) === peer) this.peers.delete(address);
  }

  private giveBack(peer: Peer, comm: Comm): void {
    const { idleMax = 4 } = this.options;
    const isWanted = !peer.connecting.signal.aborted && peer.idle.length < idleMax;
    if (isWanted && !comm.isClosed) peer.idle.push(comm);
    else inBackground(comm.close(), (failed) => comm.abort(failed));
  }
}

/** A connection to the own scheduler, as a client, a worker or a peer of it has. It has to say hello. */
export function openChannel(
  plugin: Pick<Bridge, 'connect'> & Pick<PluginContext, 'clock'>,
  handlers: ChannelHandlers,
): Channel {
  let channel: Channel | undefined;
  // Opened before `connect` returns.
  plugin.connect((connection) => {
    channel = new Channel(connection, plugin.clock, handlers);
    return channel;
  });
  return channel as unknown as Channel;
}
