import { randomUUID } from 'node:crypto';
import {
  type Channel,
  type Clock,
  every,
  type RegisterClientReply,
  type Timer,
  type ToClientMessage,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { deserialise } from '../tasks/index.ts';
import { type Network, openChannel } from './connect.ts';
import type { KeyEntry } from './entry.ts';
import { Fetcher, type FetchOptions } from './fetcher.ts';
import type { CancelOptions, FutureOwner } from './future.ts';
import { KeyTable, releasedError } from './key-table.ts';
import { Outgoing } from './outgoing.ts';
import { Peers } from './peers.ts';

/** Waits between attempts to fetch a result that nobody has where the scheduler says it is. */
const LOST_DELAYS_MS = [10, 50, 100, 200, 500, 1000, 2000, 4000];

/** What is done around every wait of a client: see {@link FutureOwner.waiting}. */
export interface Pause {
  begin(): void;
  /** Resolves when its owner may go on. */
  end(): Promise<void>;
}

/**
 * One connection to a scheduler, with all that depends on it. When it is over, whatever is open
 * fails with `ERR_CLOSED`.
 */
export class Session implements FutureOwner {
  readonly outgoing: Outgoing;
  readonly table: KeyTable;
  private readonly fetcher: Fetcher;
  private heartbeat: Timer | undefined;
  private closing: Promise<void> | undefined;
  private closedBy: Error | undefined;
  private readonly ending = new AbortController();
  /** Key of the task that the client belongs to at present, if it belongs to one. */
  submittingTask: string | undefined;
  /** What the task does while it waits. */
  pause: Pause | undefined;
  /** Something is bound to the client that ends with it alone: a lease, a subscription. */
  hasBonds = false;

  private constructor(
    readonly id: string,
    private readonly channel: Channel,
    readonly clock: Clock,
    readonly peers: Peers,
  ) {
    this.outgoing = new Outgoing(id.slice(-12), (reports) => {
      channel.send(...(reports as unknown as WireMessage[]));
    });
    this.table = new KeyTable(this.outgoing);
    this.fetcher = new Fetcher(channel, peers);
  }

  /** @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION` */
  static async open(address: string, name: string, network: Network): Promise<Session> {
    const id = `${name}-${randomUUID()}`;
    const early: WireMessage[] = [];
    let session: Session | undefined;
    let closedEarly: Error | undefined;
    const channel = await openChannel(address, 'client', network, {
      onMessage: (message) => {
        if (session === undefined) early.push(message);
        else session.receive(message);
      },
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `a client does not answer "${method}"`);
      },
      onClose: (error) => {
        closedEarly = error;
        session?.onClosed(error);
      },
    });
    try {
      const { heartbeatIntervalMs } = await channel.request<RegisterClientReply>(
        'register-client',
        { client: id, versions: { node: process.versions.node } },
        network.timeoutMs,
      );
      session = new Session(id, channel, network.clock, new Peers(network));
      for (const message of early) session.receive(message);
      if (channel.isClosed) session.onClosed(closedEarly);
      else session.startHeartbeat(heartbeatIntervalMs);
      return session;
    } catch (error) {
      channel.abort(error as Error);
      throw error;
    }
  }

  /** Aborted, with the reason, when the connection is over or the client closed. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get isClosed(): boolean {
    return this.closedBy !== undefined;
  }

  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void {
    if (this.closedBy !== undefined) throw this.closedError();
  }

  /** Asks the scheduler, after all that was reported before. */
  request<T>(method: string, parameters: WireMessage): Promise<T> {
    if (this.closedBy !== undefined) return Promise.reject(this.closedError());
    this.outgoing.flush();
    return this.channel.request<T>(method, parameters);
  }

  async resultOf(entry: KeyEntry, options: FetchOptions = {}): Promise<unknown> {
    entry.references++;
    try {
      for (let attempt = 0; ; attempt++) {
        if (!entry.isSettled) await this.waiting(entry.settled());
        const error = entry.error();
        if (error !== undefined) throw error;
        this.checkOpen();
        if (entry.detached) throw releasedError(entry.key);
        const bytes = await this.fetcher.fetch(entry, options);
        if (bytes !== undefined) return deserialise(bytes);
        await this.recoverLost(entry, attempt);
      }
    } finally {
      this.releaseEntry(entry);
    }
  }

  async whenSettled(entry: KeyEntry): Promise<void> {
    entry.references++;
    try {
      if (!entry.isSettled) await this.waiting(entry.settled());
    } finally {
      this.releaseEntry(entry);
    }
  }

  /**
   * Goes on when all have ended, holding them until that is done too.
   * @param failFast - reject with the first error instead of waiting for the others
   */
  async whenAllSettled<T>(
    entries: readonly KeyEntry[],
    { failFast }: { readonly failFast: boolean },
    then: () => Promise<T>,
  ): Promise<T> {
    for (const entry of entries) entry.references++;
    try {
      const settled = new Promise<void>((resolve, reject) => {
        let missing = entries.length + 1;
        const onSettled = (): void => {
          if (--missing === 0) resolve();
        };
        for (const entry of entries) {
          entry.onSettled(() => {
            const error = failFast ? entry.error() : undefined;
            if (error === undefined) onSettled();
            else reject(error);
          });
        }
        onSettled();
      });
      await (entries.every((entry) => entry.isSettled) ? settled : this.waiting(settled));
      return await then();
    } finally {
      for (const entry of entries) this.releaseEntry(entry);
    }
  }

  async waiting<T>(wait: Promise<T>): Promise<T> {
    const { pause } = this;
    if (pause === undefined) return wait;
    pause.begin();
    try {
      return await wait;
    } finally {
      await pause.end();
    }
  }

  /** The task that the client belonged to has ended: lets go of all that it had. */
  reset(): void {
    this.table.releaseAll();
    this.submittingTask = undefined;
    this.pause = undefined;
  }

  cancelEntries(entries: readonly KeyEntry[], options: CancelOptions): void {
    this.table.cancel(entries, options);
  }

  releaseEntry(entry: KeyEntry): void {
    this.table.release(entry);
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private receive(message: WireMessage): void {
    this.table.handle(message as unknown as ToClientMessage);
  }

  private async recoverLost(entry: KeyEntry, attempt: number): Promise<void> {
    const delayMs = LOST_DELAYS_MS[attempt];
    if (delayMs === undefined) {
      throw new YardmasterError(
        'ERR_CONNECT',
        `the result of "${entry.key}" should be on ${entry.workers.join(', ')}, but neither this client nor the scheduler can fetch it`,
        { key: entry.key, workers: entry.workers },
      );
    }
    // A worker may have left a moment ago. The scheduler tells when the result is there again.
    this.table.reportLost(entry);
    await new Promise<void>((resolve) => void this.clock.setTimer(delayMs, resolve));
  }

  private startHeartbeat(intervalMs: number): void {
    this.heartbeat = every(this.clock, intervalMs, () =>
      this.outgoing.report({ op: 'heartbeat-client' }),
    );
  }

  private async shutDown(): Promise<void> {
    this.outgoing.flush();
    this.end(new YardmasterError('ERR_CLOSED', 'the client was closed'));
    await Promise.all([this.channel.close(), this.peers.close()]);
  }

  private onClosed(error: Error | undefined): void {
    this.end(
      new YardmasterError(
        'ERR_CLOSED',
        `the scheduler at ${this.channel.peerAddress} closed the connection`,
        { scheduler: this.channel.peerAddress },
        error === undefined ? {} : { cause: error },
      ),
    );
    this.closing ??= this.peers.close();
  }

  private end(why: Error): void {
    this.heartbeat?.cancel();
    this.closedBy ??= why;
    this.table.close((key) => this.closedError(key));
    this.ending.abort(this.closedError());
  }

  private closedError(key?: string): YardmasterError {
    const { message = 'the client is closed' } = this.closedBy ?? {};
    return new YardmasterError(
      'ERR_CLOSED',
      key === undefined ? message : `${message} before "${key}" was done`,
      key === undefined ? {} : { key },
      { cause: this.closedBy },
    );
  }
}
