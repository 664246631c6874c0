import { randomBytes } from 'node:crypto';
import {
  type Channel,
  type ClientReport,
  type Clock,
  every,
  type RegisterClientReply,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { type AnswerRules, watchAnswers } from '../../core/shared/channels.ts';
import { comeBack, notBack, type ReconnectRules } from '../../core/shared/reconnect.ts';
import { type Network, openChannelTo } from '../peers/peers.ts';

const SECRET_BYTES = 32;

/** The options of a client's connection. */
interface LinkOptions {
  /** Of the scheduler. */
  readonly address: string;
  /** Key of the client. */
  readonly client: string;
  readonly network: Network;
  /** The rules of reconnection. Default: it does not reconnect. */
  readonly reconnect?: ReconnectRules;
  /** Milliseconds for which the scheduler keeps what the client wants while its connection is broken. */
  readonly returnWithinMs?: number;
  /** The rules by which a scheduler that does not answer counts as gone. */
  readonly answers: AnswerRules;
}

/** Callbacks to the owner of a link. */
export interface LinkOwner {
  onMessage(message: WireMessage): void;
  /**
   * The link is registered, for the first time or again.
   * @param committed - number of the last report that is in the journal of the scheduler; undefined: it has none
   */
  onRegistered(committed: number | undefined): void;
  /** Time for a sign of life. */
  onHeartbeat(): void;
  /** The connection is lost; the link tries to come back. */
  onAway(): void;
  /**
   * The link is registered again. Brings both sides into agreement; called once more when that fails.
   * @param ask - a request over the new connection
   */
  restore(ask: (method: string, parameters: WireMessage) => Promise<unknown>): Promise<void>;
  /** It is back, and both sides agree. */
  onBack(attempts: number, afterMs: number): void;
  /** It is over. */
  onEnd(error: YardmasterError): void;
}

/** A connection on which the client is registered. */
interface Registered {
  readonly channel: Channel;
  readonly reply: RegisterClientReply;
}

/** A client's conversation with its scheduler, over one connection after the other. */
export class SchedulerLink {
  private channel: Channel | undefined;
  private heartbeat: Timer | undefined;
  private answerWatch: Timer | undefined;
  /** The end of an absence; undefined while it is connected. */
  private returning: Promise<void> | undefined;
  /** An attempt to come back has reached the scheduler. */
  private isReturning = false;
  /** Proves to the scheduler that a new connection is of the same client. */
  private readonly secret = randomBytes(SECRET_BYTES).toString('base64url');
  private readonly ending = new AbortController();
  private onlyLooks = false;
  private lastMessageBytesMax = Infinity;
  private isWithinProcess = false;

  constructor(
    private readonly options: LinkOptions,
    private readonly owner: LinkOwner,
  ) {}

  /** The connection is lost, and not yet back. */
  get isAway(): boolean {
    return this.returning !== undefined;
  }

  /** Largest message in bytes that reaches the scheduler and its workers, at present or last. */
  get messageBytesMax(): number {
    return this.lastMessageBytesMax;
  }

  /** True when shared memory stays shared with the scheduler and all its workers. */
  get sharesMemory(): boolean {
    return this.isWithinProcess;
  }

  get clock(): Clock {
    return this.options.network.clock;
  }

  /** @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION` */
  async connect(): Promise<void> {
    this.adopt(await this.register());
  }

  /**
   * All or none are sent. Lost when the connection is.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME` when one of them cannot be sent, `ERR_ACCESS` when the key
   *   of this client does not permit it
   */
  send(reports: readonly ClientReport[]): void {
    if (!this.onlyLooks) this.channel?.sendAll(reports);
    else this.channel?.sendAll(reports.filter(isOfViewer));
  }

  /** @throws YardmasterError `ERR_CLOSED`; RemoteError what the scheduler answers */
  request<T>(method: string, parameters: WireMessage): Promise<T> {
    if (this.returning === undefined && this.channel !== undefined) {
      return this.channel.request<T>(method, parameters);
    }
    return this.present().then((channel) => channel.request<T>(method, parameters));
  }

  /** The connection, as soon as there is one. @throws YardmasterError `ERR_CLOSED` */
  async present(): Promise<Channel> {
    await this.returning;
    if (this.channel !== undefined) return this.channel;
    throw new YardmasterError('ERR_CLOSED', `there is no connection to ${this.options.address}`);
  }

  /** Sends what is queued, then closes. No more attempts to come back; one that has reached the scheduler is completed. */
  async close(): Promise<void> {
    this.ending.abort();
    this.stopTimers();
    if (this.isReturning) await this.returning?.catch(() => undefined);
    else if (this.channel !== undefined) await this.leave(this.channel);
  }

  /** Without a word the scheduler would wait for the client to come back. */
  private async leave(channel: Channel): Promise<void> {
    if (this.options.reconnect !== undefined) channel.send({ op: 'close-client' });
    await channel.close();
  }

  private async register(onAnswer?: () => void): Promise<Registered> {
    const { address, client, network, reconnect, returnWithinMs = 0 } = this.options;
    const opened: { channel?: Channel } = {};
    const channel = await openChannelTo(address, 'client', network, {
      onMessage: (message) => this.owner.onMessage(message),
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `a client does not answer "${method}"`);
      },
      onClose: (error) => this.onClose(opened.channel, error),
    });
    opened.channel = channel;
    onAnswer?.();
    try {
      const reply = await channel.request<RegisterClientReply>(
        'register-client',
        {
          client,
          versions: { node: process.versions.node },
          ...(reconnect === undefined
            ? {}
            : { returnWithinMs: finite(returnWithinMs), secret: this.secret }),
          wantsCommits: true,
        },
        network.timeoutMs,
      );
      await this.checkOpen(channel);
      this.owner.onRegistered(reply.committed);
      return { channel, reply };
    } catch (error) {
      channel.abort(error as Error);
      throw error;
    }
  }

  /** @throws YardmasterError `ERR_CLOSED` when the client was closed meanwhile */
  private async checkOpen(channel: Channel): Promise<void> {
    if (!this.ending.signal.aborted) return;
    await this.leave(channel);
    throw new YardmasterError('ERR_CLOSED', 'the client was closed');
  }

  private adopt({ channel, reply }: Registered): void {
    this.channel = channel;
    const { heartbeatIntervalMs, messageBytesMax = Infinity, onlyLooks = false } = reply;
    this.onlyLooks = onlyLooks;
    this.lastMessageBytesMax = Math.min(channel.messageBytesMax, messageBytesMax);
    this.isWithinProcess = channel.sharesMemory && reply.sharesMemory === true;
    this.heartbeat = every(this.clock, heartbeatIntervalMs, () => this.owner.onHeartbeat());
    this.answerWatch = watchAnswers(channel, this.clock, this.options.answers);
    // Between the answer and now.
    if (channel.isClosed) this.onClose(channel, undefined);
  }

  private onClose(channel: Channel | undefined, error: Error | undefined): void {
    // The caller of a failed attempt to reconnect gets the error from the attempt itself.
    if (channel === undefined || this.channel !== channel || this.isAway) return;
    const { reconnect, address } = this.options;
    this.channel = undefined;
    this.stopTimers();
    const gone = new YardmasterError(
      'ERR_CLOSED',
      YardmasterError.is(error, 'ERR_TIMEOUT')
        ? `the connection to the scheduler was given up: ${error.message}`
        : `the scheduler at ${address} closed the connection`,
      { scheduler: address },
      error === undefined ? {} : { cause: error },
    );
    if (reconnect === undefined || this.ending.signal.aborted) {
      this.owner.onEnd(gone);
      return;
    }
    this.returning = this.comeBack(gone, reconnect);
    this.returning.catch(() => undefined); // Its users handle the rejection.
    this.owner.onAway();
  }

  private stopTimers(): void {
    this.heartbeat?.cancel();
    this.answerWatch?.cancel();
  }

  private async comeBack(gone: YardmasterError, rules: ReconnectRules): Promise<void> {
    try {
      const { value, attempts, afterMs } = await comeBack(
        this.clock,
        rules,
        this.ending.signal,
        (onAnswer) => this.return(onAnswer),
      );
      this.returning = undefined;
      this.adopt(value);
      if (!this.isAway) this.owner.onBack(attempts, afterMs);
    } catch (error) {
      const ended = notBack(gone, error);
      this.returning = undefined;
      this.owner.onEnd(ended);
      throw ended;
    }
  }

  private async return(onAnswer: () => void): Promise<Registered> {
    try {
      const registered = await this.register(() => {
        this.isReturning = true;
        onAnswer();
      });
      await this.restore(registered.channel);
      return registered;
    } finally {
      this.isReturning = false;
    }
  }

  private async restore(channel: Channel): Promise<void> {
    this.channel = channel;
    try {
      await this.owner.restore((method, parameters) =>
        channel.request(method, parameters, this.options.network.timeoutMs),
      );
      await this.checkOpen(channel);
    } catch (error) {
      this.channel = undefined;
      channel.abort(error as Error);
      throw error;
    }
  }
}

/** Replaces Infinity by a number that can be sent; the scheduler has its own limit. */
function finite(ms: number): number {
  return Math.min(ms, Number.MAX_SAFE_INTEGER);
}

/**
 * True when the scheduler takes the report from a viewer, to whom it never gave a key that could be released.
 * @throws YardmasterError `ERR_ACCESS`
 */
function isOfViewer({ op }: ClientReport): boolean {
  if (op === 'heartbeat-client') return true;
  if (op === 'client-releases-keys') return false;
  throw new YardmasterError(
    'ERR_ACCESS',
    `the key of a viewer does not permit to send "${op}"; use the access file of another role`,
    { role: 'viewer' },
  );
}
