import { RETIRE_SELF } from '../api/amm-manager.ts';
import { randomBytes } from 'node:crypto';
import type { Channel } from '../api/channel.ts';
import { every, type Timer } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import type {
  HeldResults,
  HeldRuns,
  RegisterWorkerReply,
  RegisterWorkerRequest,
} from '../messages/protocol.ts';
import type { WorkerReport } from '../messages/stimulus.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { openChannel, SCHEDULER_TTL_MS, watchAnswers } from '../shared/channels.ts';
import { type CameBack, comeBack, type ReconnectRules } from '../shared/reconnect.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import { NETWORK, type Network, transportFor } from './peer-channels.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import type { WorkerHostOptions } from './worker-options.ts';

const KEEP_ALIVE_MS = 60_000;
const SECRET_BYTES = 32;

/** A report without its id, which the link gives it. */
type UnnamedReport = WorkerReport extends infer R
  ? R extends WorkerReport
    ? Omit<R, 'stimulusId'>
    : never
  : never;

/** The worker as its link sees it. */
export interface LinkedWorker {
  status(): WorkerStatus;
  metrics(): WorkerMetrics;
  /** Seconds for which each key has been running. */
  executing(): [key: string, seconds: number][];
  onMessage(message: ToWorkerMessage): void;
  onRequest(method: string, parameters: WireMessage): unknown;
  /** All messages that arrived together were handled. */
  onBatchEnd(): void;
  /** The connection ended. */
  onGone(error: Error | undefined): void;
  /**
   * Its results, which the scheduler that it comes back to may know.
   * @param keepsRuns - that scheduler keeps a journal: copies and runs count, too
   */
  held(keepsRuns: boolean): { readonly held: HeldResults; readonly runs?: HeldRuns };
  /** It reconnects to a different scheduler, which does not know its results. */
  onOtherScheduler(): void;
}

/** The conversation of a worker with its scheduler: registration, signs of life, reports. */
@collaborator
export class WorkerLink {
  private channel: Channel | undefined;
  /** The scheduler has answered, and has not gone since. */
  private isRegistered = false;
  /** Of the scheduler process that it is, or was, registered with. */
  private serverId: string | undefined;
  /** Proves to the scheduler that a new connection is of the same worker. */
  private readonly secret = randomBytes(SECRET_BYTES).toString('base64url');
  /** The scheduler keeps a journal: what it knew before it was lost, it knows when it is back. */
  keepsRuns = false;
  private readonly ending = new AbortController();
  private readonly timers: Timer[] = [];
  private offsetMs = 0;
  private eventCount = 0;

  private readonly schedulerAddress: string;
  private readonly schedulerTtlMs: number;
  private worker!: LinkedWorker;

  constructor(
    @inject(NETWORK) private readonly network: Network,
    @inject(WORKER_OPTIONS) options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    this.schedulerAddress = options.schedulerAddress;
    this.schedulerTtlMs = options.schedulerTtlMs ?? SCHEDULER_TTL_MS;
  }

  /** Sets what the scheduler speaks to; before {@link register}. */
  connect(worker: LinkedWorker): void {
    this.worker = worker;
  }

  /** Nothing can be said to the scheduler at present. */
  get isClosed(): boolean {
    return this.channel?.isClosed !== false;
  }

  /** The scheduler's clock minus this one, in milliseconds. */
  get clockOffsetMs(): number {
    return this.offsetMs;
  }

  /** Unique name for an event: `task-finished-7@alice`. */
  nameEvent(what: string): string {
    return `${what}-${++this.eventCount}@${this.identity.name}`;
  }

  /**
   * Connects and registers; from then on gives signs of life.
   *
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
   * @throws RemoteError `ERR_REGISTRATION` when the scheduler refuses
   */
  async register(onAnswer?: () => void): Promise<RegisterWorkerReply> {
    const { worker, network, schedulerAddress: address } = this;
    const { clock, connectTimeoutMs: timeoutMs } = network;
    let serverId = '';
    const opened: { channel?: Channel } = {};
    const channel = await openChannel(
      {
        transport: transportFor(network, address),
        address,
        role: 'worker',
        clock,
        timeoutMs,
        onHello: (reply) => (serverId = reply.serverId),
        onBatchEnd: () => worker.onBatchEnd(),
      },
      {
        onMessage: (message) => worker.onMessage(message as unknown as ToWorkerMessage),
        onRequest: (method, parameters) => worker.onRequest(method, parameters),
        onClose: (error) => this.onClose(opened.channel, error),
      },
    );
    opened.channel = channel;
    onAnswer?.();
    this.checkOpen(channel);
    if (this.serverId !== undefined && this.serverId !== serverId) worker.onOtherScheduler();
    const isBack = this.serverId === serverId;
    const askedMs = clock.nowMs();
    const request: RegisterWorkerRequest = {
      identity: this.identity,
      status: worker.status(),
      metrics: worker.metrics(),
      secret: this.secret,
      ...(isBack ? worker.held(this.keepsRuns) : {}),
    };
    // What is reported from now on arrives after the request.
    this.channel = channel;
    this.serverId = serverId;
    const reply = await this.ask<RegisterWorkerReply>(channel, { ...request }, timeoutMs);
    this.checkOpen(channel);
    this.isRegistered = true;
    this.keepsRuns = reply.keepsRuns === true;
    this.offsetMs = reply.nowMs - (askedMs + clock.nowMs()) / 2;
    this.timers.push(
      every(clock, reply.heartbeatIntervalMs, () => this.heartbeat()),
      every(clock, KEEP_ALIVE_MS, () => this.report({ op: 'keep-alive' })),
      watchAnswers(channel, clock, {
        ttlMs: this.schedulerTtlMs,
        onSilent: (silentMs) => this.warnOfSilence(silentMs),
      }),
    );
    return reply;
  }

  /**
   * After the connection was lost: registers again, as soon as the scheduler lets it.
   *
   * @throws YardmasterError `ERR_TIMEOUT` when it was not there in time, `ERR_PROTOCOL` when another
   *   version has come, `ERR_CLOSED` after {@link stop}
   */
  reconnect(rules: ReconnectRules): Promise<CameBack<RegisterWorkerReply>> {
    const { network, ending } = this;
    return comeBack(network.clock, rules, ending.signal, async (onAnswer) => {
      const reply = await this.register(onAnswer);
      if (this.isRegistered) return reply;
      throw this.closedAtOnce();
    });
  }

  private closedAtOnce(): YardmasterError {
    const message = `${this.schedulerAddress} closed the connection at once`;
    return new YardmasterError('ERR_CLOSED', message);
  }

  /** Sends a report; it is lost without a connection. */
  report(report: UnnamedReport): void {
    const stimulusId = this.nameEvent(report.op);
    this.channel?.send({ stimulusId, ...report });
  }

  /** A message of the machine, which has named it. */
  send(message: WireMessage): void {
    // The scheduler has requested the release, so the confirmation is not urgent.
    if (message['op'] === 'release-worker-data') this.channel?.sendLater(message);
    else this.channel?.send(message);
  }

  /**
   * Asks the scheduler to take the worker out of service and to move away what only it holds.
   *
   * @throws YardmasterError `ERR_CLOSED`, `ERR_TIMEOUT`
   * @throws RemoteError what the scheduler says against it
   */
  async retire(timeoutMs: number): Promise<void> {
    await this.channel?.request('command', { command: RETIRE_SELF }, timeoutMs);
  }

  /** No more signs of life, and no more attempts to come back. */
  stop(): void {
    this.ending.abort();
    this.stopTimers();
  }

  /** Sends what is queued, then closes. */
  async close(): Promise<void> {
    await this.channel?.close();
  }

  /** Closes at once. */
  abort(reason: Error): void {
    this.channel?.abort(reason);
  }

  private async ask<T>(channel: Channel, request: WireMessage, timeoutMs: number): Promise<T> {
    try {
      return await channel.request<T>('register-worker', request, timeoutMs);
    } catch (error) {
      if (this.channel === channel) this.channel = undefined;
      channel.abort(error as Error);
      throw error;
    }
  }

  /** @throws YardmasterError `ERR_CLOSED` when the worker was closed meanwhile, or the scheduler has closed the connection */
  private checkOpen(channel: Channel): void {
    if (channel.isClosed) throw this.closedAtOnce();
    if (!this.ending.signal.aborted) return;
    const error = new YardmasterError('ERR_CLOSED', 'the worker was closed meanwhile');
    channel.abort(error);
    throw error;
  }

  /** The caller of a failed attempt to connect gets the error from the attempt itself. */
  private onClose(channel: Channel | undefined, error: Error | undefined): void {
    if (this.channel !== channel || !this.isRegistered) return;
    this.isRegistered = false;
    this.stopTimers();
    this.worker.onGone(error);
  }

  private warnOfSilence(silentMs: number): void {
    const { schedulerAddress: scheduler, identity, schedulerTtlMs } = this;
    this.log.warn(
      { scheduler, worker: identity.address, silentMs },
      `the scheduler ${scheduler} has not answered for ${silentMs / 1000} s; after ${schedulerTtlMs / 1000} s (worker.schedulerTtl) it counts as gone`,
    );
  }

  private stopTimers(): void {
    for (const timer of this.timers.splice(0)) timer.cancel();
  }

  private heartbeat(): void {
    this.report({
      op: 'heartbeat-worker',
      metrics: this.worker.metrics(),
      executing: this.worker.executing(),
      workerNowMs: this.network.clock.nowMs(),
    });
  }
}

// The errors with which a worker closes without a request.

/** The connection has ended. */
export function schedulerGone(scheduler: string, cause: Error | undefined): YardmasterError {
  const why = cause === undefined ? '' : `: ${cause.message}`;
  const message = `the scheduler ${scheduler} closed the connection${why}`;
  return new YardmasterError(
    'ERR_CLOSED',
    message,
    { scheduler },
    cause === undefined ? {} : { cause },
  );
}

/** Its machine found itself inconsistent. */
export function broken(address: string, cause: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_INVARIANT',
    `the worker ${address} closes: ${messageOf(cause)}`,
    YardmasterError.is(cause) ? cause.data : {},
    { cause },
  );
}
