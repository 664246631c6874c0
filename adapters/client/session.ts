import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { inspect } from 'node:util';
import {
  type Clock,
  type ToClientMessage,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { type AnswerRules, SCHEDULER_TTL_MS } from '../../core/shared/channels.ts';
import type { ReconnectRules } from '../../core/shared/reconnect.ts';
import { type Network, type Pause, pausing, Peers, type Serialised } from '../peers/peers.ts';
import { readResult } from '../tasks/index.ts';
import type { KeyEntry } from './entry.ts';
import { Fetcher, type FetchOptions } from './fetcher.ts';
import type { CancelOptions, FutureOwner } from './future.ts';
import { cancelledError, KeyTable, releasedError } from './key-table.ts';
import { type LinkOwner, SchedulerLink } from './link.ts';
import { type NewReport, Outgoing } from './outgoing.ts';
import { SessionActors } from './session-actors.ts';

/** Milliseconds for a run whose deadline is over to end. */
const DEADLINE_GRACE_MS = 500;
/** The interval at which a client that closes looks whether results are still being fetched. */
const DRAIN_POLL_MS = 5;
/** Waits between attempts to fetch a result that is missing where the scheduler says it is. */
const LOST_DELAYS_MS = [10, 50, 100, 200, 500, 1000, 2000, 4000];

/** The scheduler's answer to a client that has reconnected. */
export interface Reconnected {
  /** Milliseconds that it was away. */
  readonly afterMs: number;
  /** At least 1. */
  readonly attempts: number;
  /** Keys of its futures that the scheduler does not know any more: they failed with `ERR_LOST`. */
  readonly lost: readonly string[];
}

/** The options of a session: its reconnection, and the origin of its tasks. */
export interface SessionOptions {
  /** The rules of reconnection. Default: the session ends. */
  readonly reconnect?: ReconnectRules;
  /**
   * With `reconnect`: milliseconds for which a scheduler that has not gone keeps what the client wants when its
   * connection breaks. Default: as long as the client tries to come back.
   */
  readonly returnWithinMs?: number;
  /** The rules by which a scheduler that does not answer counts as gone. Default: after five minutes. */
  readonly answers?: AnswerRules;
  readonly onReconnected?: (event: Reconnected) => void;
  /** The project to which names of modules of tasks are relative. Real path. Default: see `travellingName`. */
  readonly codeRoot?: string;
}

/**
 * One conversation with a scheduler, with all that depends on it. When it is over, whatever is open
 * fails with `ERR_CLOSED`.
 */
export class Session implements FutureOwner, LinkOwner {
  readonly outgoing: Outgoing;
  readonly table: KeyTable;
  readonly clock: Clock;
  readonly peers: Peers;
  private readonly link: SchedulerLink;
  private readonly actors: SessionActors;
  private readonly fetcher: Fetcher;
  private closing: Promise<void> | undefined;
  /** Set while it takes nothing new: ends the wait for what is open. */
  private drainEnd: AbortController | undefined;
  /** Results that are being fetched. */
  private reading = 0;
  private closedBy: Error | undefined;
  private readonly ending = new AbortController();
  /** Called when the connection is back, with the scheduler as it was or another one. They must not throw. */
  readonly returnListeners = new Set<() => void>();
  /** Key of the task that the client belongs to at present, if it belongs to one. */
  submittingTask: string | undefined;
  /** The steps around a wait of the task. */
  pause: Pause | undefined;
  /** Has used queues or topics: the scheduler has noted that. */
  mustLeave = false;
  /** Calls of coordination that are under way, leases, subscriptions: what ends with the connection alone. */
  bonds = 0;

  private constructor(
    readonly id: string,
    address: string,
    network: Network,
    private readonly options: SessionOptions,
  ) {
    // Node 20 would warn of a leak: each stream of the client listens.
    setMaxListeners(0, this.ending.signal);
    this.clock = network.clock;
    this.peers = new Peers(network);
    const { reconnect, answers = { ttlMs: SCHEDULER_TTL_MS } } = options;
    const { returnWithinMs = reconnect?.timeoutMs } = options;
    this.link = new SchedulerLink(
      { address, client: id, network, reconnect, returnWithinMs, answers },
      this,
    );
    this.outgoing = new Outgoing(
      id,
      (reports) => this.link.send(reports),
      (report, error) => this.onUnsendable(report, error),
      () => this.link.messageBytesMax,
    );
    this.table = new KeyTable(this.outgoing);
    this.fetcher = new Fetcher(() => this.link.present(), this.peers);
    this.actors = new SessionActors(this, this.peers);
  }

  /** @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION` */
  static async open(
    address: string,
    name: string,
    network: Network,
    options: SessionOptions = {},
  ): Promise<Session> {
    const session = new Session(`${name}-${randomUUID()}`, address, network, options);
    await session.link.connect();
    return session;
  }

  /** Aborted, with the reason, when the connection is over or the client closed. */
  get signal(): AbortSignal {
    return this.ending.signal;
  }

  get isClosed(): boolean {
    return this.closedBy !== undefined;
  }

  /** The project to which names of modules of tasks are relative, if one was given. */
  get codeRoot(): string | undefined {
    return this.options.codeRoot;
  }

  /** Largest message in bytes that can be sent to the scheduler. */
  get messageBytesMax(): number {
    return this.link.messageBytesMax;
  }

  /** True when the whole cluster is in this process, so that shared memory stays shared. */
  get sharesMemory(): boolean {
    return this.link.sharesMemory;
  }

  /** True when there is a connection at present. */
  get isConnected(): boolean {
    return !this.isClosed && !this.link.isAway;
  }

  /** True when it tries to, when its connection is lost. */
  get mayComeBack(): boolean {
    return this.options.reconnect !== undefined;
  }

  /** Resolves when there is a connection (again). @throws YardmasterError `ERR_CLOSED` */
  async connected(): Promise<void> {
    this.checkOpen();
    await this.link.present();
  }

  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void {
    if (this.closedBy !== undefined) throw this.closedError();
  }

  /** @throws YardmasterError `ERR_CLOSED`, also while it waits for what is open before it closes */
  checkTaking(): void {
    this.checkOpen();
    if (this.drainEnd === undefined) return;
    throw new YardmasterError('ERR_CLOSED', 'the client is closing, and takes nothing new');
  }

  /** Asks the scheduler, after all that was reported before. */
  request<T>(method: string, parameters: WireMessage): Promise<T> {
    if (this.closedBy !== undefined) return Promise.reject(this.closedError());
    this.outgoing.flush();
    const { whenSent } = this.outgoing;
    if (whenSent === undefined) return this.link.request<T>(method, parameters);
    return whenSent.then(() => this.link.request<T>(method, parameters));
  }

  resultOf(entry: KeyEntry, options: FetchOptions = {}): Promise<unknown> {
    if (entry.isSettled || this.pause !== undefined) return this.fetchResult(entry, options);
    entry.references++;
    return new Promise((resolve) => {
      entry.onSettled(() => {
        try {
          // Most results come with the news of them.
          resolve(this.isHere(entry) ? this.resultHere(entry) : this.fetchResult(entry, options));
        } catch {
          resolve(this.fetchResult(entry, options)); // Rejects with what is wrong with the bytes.
        }
        this.releaseEntry(entry);
      });
    });
  }

  private async fetchResult(entry: KeyEntry, options: FetchOptions): Promise<unknown> {
    entry.references++;
    this.reading++;
    try {
      let attempt = 0;
      for (;;) {
        if (!entry.isSettled) await this.waiting(entry.settled());
        const error = entry.error();
        if (error !== undefined) throw error;
        this.checkOpen();
        if (entry.detached) throw releasedError(entry.key);
        if (this.isHere(entry)) return this.resultHere(entry);
        const bytes = await this.fetch(entry, options);
        if (bytes === 'interrupted') continue;
        if (bytes !== undefined) return readResult(bytes, () => this.actors.callerFor(entry));
        await this.recoverLost(entry, attempt++);
      }
    } finally {
      this.reading--;
      this.releaseEntry(entry);
    }
  }

  /** True when {@link resultHere} has the result, so that a caller need not wait for it. */
  isHere(entry: KeyEntry): boolean {
    return entry.value !== undefined && entry.status === 'finished' && !this.isClosed;
  }

  /** The result of an entry that {@link isHere}. */
  resultHere(entry: KeyEntry): unknown {
    return readResult(entry.value as Uint8Array, () => this.actors.callerFor(entry));
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
   * Calls `then` when all entries have ended, and holds them until it is done.
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
        const onEntry = (entry: KeyEntry): void => {
          const error = failFast ? entry.error() : undefined;
          if (error === undefined) onSettled();
          else reject(error);
        };
        for (const entry of entries) entry.onSettled(onEntry);
        onSettled();
      });
      await (entries.every((entry) => entry.isSettled) ? settled : this.waiting(settled));
      return await then();
    } finally {
      for (const entry of entries) this.releaseEntry(entry);
    }
  }

  waiting<T>(wait: Promise<T>): Promise<T> {
    return pausing(this.pause, wait);
  }

  /** Releases all keys, because the task that the client belonged to has ended. */
  reset(): void {
    this.table.releaseAll();
    this.submittingTask = undefined;
    this.pause = undefined;
  }

  cancelEntries(entries: readonly KeyEntry[], options: CancelOptions): void {
    this.table.cancel(entries, options);
  }

  /** Ends these wants because their signal was aborted; what depends on them is another request's. */
  abortEntries(entries: readonly KeyEntry[], reason: string, cause: unknown): void {
    const errorOf = (key: string): Error => cancelledError(key, reason, undefined, { cause });
    this.table.cancel(entries, { reason }, { errorOf, keepsDependents: true });
  }

  /** Gives up what has not ended in time. */
  expireEntries(entries: readonly KeyEntry[], deadlineMs: number): void {
    const reason = `it had not ended ${deadlineMs} ms after its submission`;
    const errorOf = (key: string): Error => {
      const message = `"${key}" was given up: ${reason}, as its deadlineMs says`;
      return new YardmasterError('ERR_TASK_TIMEOUT', message, { key, deadlineMs });
    };
    const options = { reason, killTimeoutMs: DEADLINE_GRACE_MS };
    this.table.cancel(entries, options, { errorOf, keepsDependents: true });
  }

  cloneEntry(entry: KeyEntry): KeyEntry {
    if (entry.detached) return entry; // It has ended for good, and so has its clone.
    const clone = this.table.add(entry.key, entry.definition);
    clone.site = entry.site;
    return clone;
  }

  releaseEntry(entry: KeyEntry): void {
    this.table.release(entry);
  }

  /** @param graceMs - for what is open to end; without, what an earlier call waits for is given up, too */
  close(graceMs = 0): Promise<void> {
    if (graceMs === 0) this.drainEnd?.abort();
    this.closing ??= this.shutDown(graceMs);
    return this.closing;
  }

  // ---- called by the link -----------------------------------------------------------------------

  onMessage(message: WireMessage): void {
    if (message['op'] === 'committed') {
      if (message['isOver'] === true) this.outgoing.begin(undefined);
      else this.outgoing.commit(message['upTo'] as number);
      return;
    }
    const typed = message as unknown as ToClientMessage;
    this.table.handle(typed);
    if (typed.op === 'task-erred') this.actors.onErred(typed.key);
  }

  onRegistered(committed: number | undefined): void {
    this.outgoing.begin(committed);
  }

  onHeartbeat(): void {
    this.outgoing.report({ op: 'heartbeat-client' });
  }

  onAway(): void {
    this.outgoing.hold();
  }

  /** Says what was held back and what the client still holds; hears what the scheduler knows of that. */
  async restore(ask: (method: string, parameters: WireMessage) => Promise<unknown>): Promise<void> {
    const keys = this.table.expectLosses();
    this.outgoing.sendAgain();
    this.table.desire(keys, true);
    this.outgoing.resume();
    try {
      await ask('who-has', { keys: [] }); // The reports about the keys arrive before this answer.
    } catch (error) {
      this.outgoing.hold();
      throw error;
    }
  }

  onBack(attempts: number, afterMs: number): void {
    const lost = this.table.takeLosses();
    for (const listener of this.returnListeners) listener();
    try {
      this.options.onReconnected?.({ afterMs, attempts, lost });
    } catch (error) {
      process.emitWarning(`onReconnected threw: ${inspect(error)}`, 'YardmasterClient');
    }
  }

  onEnd(error: YardmasterError): void {
    this.end(error);
    this.closing ??= this.peers.close();
  }

  /** `interrupted`: the scheduler was lost meanwhile, and is back. */
  private async fetch(
    entry: KeyEntry,
    options: FetchOptions,
  ): Promise<Serialised | undefined | 'interrupted'> {
    try {
      return await this.fetcher.fetch(entry, options);
    } catch (error) {
      if (!this.link.isAway) throw error;
      await this.link.present();
      return 'interrupted';
    }
  }

  /** Futures of what was to be submitted fail; there is no future for anything else. */
  private onUnsendable(report: NewReport, error: YardmasterError): void {
    if (this.isClosed) return;
    if (report.op === 'update-graph' || report.op === 'client-desires-keys') {
      this.table.fail(report.keys, error);
    } else process.emitWarning(`"${report.op}" was not sent: ${error.message}`, 'YardmasterClient');
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
    // A worker may have left a moment ago. The scheduler reports when the result is in memory
    // again.
    this.table.reportLost(entry);
    await new Promise<void>((resolve) => void this.clock.setTimer(delayMs, resolve));
  }

  private async shutDown(graceMs: number): Promise<void> {
    if (graceMs > 0) await this.drain(graceMs);
    this.outgoing.flush();
    this.end(new YardmasterError('ERR_CLOSED', 'the client was closed'));
    await Promise.all([this.link.close(), this.peers.close()]);
  }

  /** Takes nothing new, until nothing is open and all results that are asked for are here. */
  private async drain(graceMs: number): Promise<void> {
    const { signal } = (this.drainEnd = new AbortController());
    const over = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
    });
    const timer = this.clock.setTimer(graceMs, () => this.drainEnd?.abort());
    const turn = (): Promise<void> =>
      new Promise((resolve) => void this.clock.setTimer(DRAIN_POLL_MS, resolve));
    for (let open = this.table.open; !signal.aborted && !this.isClosed; open = this.table.open) {
      if (open.length === 0 && this.reading === 0) break;
      await Promise.race([Promise.all(open.map((entry) => entry.settled())), over]);
      // Who is told of an end asks for the result now.
      await turn();
    }
    timer.cancel();
  }

  private end(why: Error): void {
    this.closedBy ??= why;
    this.outgoing.end(this.closedError());
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
