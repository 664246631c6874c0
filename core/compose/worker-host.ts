import { randomUUID } from 'node:crypto';
import type { Channel } from '../api/channel.ts';
import { every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Listener, WireMessage } from '../api/transport.ts';
import type { RegisterWorkerReply, RegisterWorkerRequest } from '../messages/protocol.ts';
import type { WorkerReport } from '../messages/stimulus.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import type { Instruction, WorkerEvent } from '../worker/events.ts';
import type { MemoryMode } from '../worker/memory/governor.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { DataServer } from './data-server.ts';
import { LogBook } from './log-book.ts';
import { type Network, openChannel, PeerChannels, transportFor } from './peer-channels.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerInspection } from './worker-inspection.ts';
import { takeIn } from './worker-intake.ts';
import { WorkerMemory } from './worker-memory.ts';
import {
  identityOf,
  transferLimit,
  type WorkerEnd,
  type WorkerHostOptions,
} from './worker-options.ts';
import { withTimeout } from './with-timeout.ts';

export type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';

const FIND_MISSING_MS = 1000;
const KEEP_ALIVE_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** Time for what is queued to leave when the worker closes. */
const CLOSE_TIMEOUT_MS = 5000;
const OUTGOING_TRANSFERS_MAX = 50;

/**
 * A running worker: connections, timers, an executor and a store around one machine
 * ({@link WorkerKernel}). The scheduler's messages and the outcomes of runs and transfers become
 * events; the machine's instructions are carried out here.
 *
 * It closes when the scheduler says so or is gone, and when its machine finds itself broken.
 */
export class WorkerHost {
  /** Resolves when it has closed, however that came. */
  readonly finished: Promise<WorkerEnd>;
  /** What the scheduler wants it to be. While that is `running`, memory may pause it. */
  private wantedStatus: WorkerStatus = 'running';
  private memoryMode: MemoryMode = 'running';
  private channel: Channel | undefined;
  private readonly activities: WorkerActivities;
  private readonly inspection: WorkerInspection;
  private readonly timers: Timer[] = [];
  private readonly inbox: WorkerEvent[] = [];
  /** Registered: before that, messages of the scheduler wait. */
  private hasStarted = false;
  private isDraining = false;
  private clockOffsetMs = 0;
  private eventCount = 0;
  private closing: Promise<void> | undefined;
  private resolveFinished!: (end: WorkerEnd) => void;

  private constructor(
    private readonly options: WorkerHostOptions & { readonly log: LogBook },
    readonly identity: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly listening: {
      readonly listener: Listener;
      readonly server: DataServer;
      readonly peers: PeerChannels;
    },
    private readonly memory: WorkerMemory,
  ) {
    const { executor, clock, log } = options;
    const { store } = memory;
    this.inspection = new WorkerInspection(kernel, log, () => this.describe());
    this.activities = new WorkerActivities({
      executor,
      store,
      clock,
      log,
      peers: listening.peers,
      nameEvent: (what) => this.nameEvent(what),
      feed: (event) => this.feed(event),
      clockOffsetMs: () => this.clockOffsetMs,
    });
    this.finished = new Promise((resolve) => {
      this.resolveFinished = resolve;
    });
  }

  /**
   * Listens for peers, connects to the scheduler and registers. When that fails nothing is left
   * behind but the executor, which is the caller's until then.
   *
   * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
   * @throws RemoteError `ERR_REGISTRATION` when the scheduler refuses
   */
  static async start(given: WorkerHostOptions): Promise<WorkerHost> {
    const options = { ...given, log: new LogBook(given.log, given.clock) };
    const { listenAddress, clock, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
    const network: Network = { clock, transports: options.transports, connectTimeoutMs };
    const serverId = options.serverId ?? `worker-${randomUUID()}`;
    const made: { host?: WorkerHost } = {};
    const memory = WorkerHost.memoryOf(options, made);
    const server = new DataServer({
      serverId,
      clock,
      store: memory.store,
      outgoingMax: () => made.host?.outgoingMax ?? 0,
      onPutData: (keys, values) => made.host?.putData(keys, values),
      identity: () => ({ ...made.host?.describe() }),
    });
    const listener = await transportFor(network, listenAddress).listen(
      listenAddress,
      (connection) => server.accept(connection),
    );
    const identity = identityOf(options, listener.address, serverId);
    const kernel = new WorkerKernel({
      address: identity.address,
      threadCount: identity.threadCount,
      resources: identity.resources,
      ...(options.ready === undefined ? {} : { ready: options.ready }),
      incomingBytesMax: transferLimit(options),
      validate: options.validate ?? false,
    });
    const peers = new PeerChannels(network);
    const host = new WorkerHost(options, identity, kernel, { listener, server, peers }, memory);
    made.host = host;
    try {
      await host.register(network);
    } catch (error) {
      host.closing = Promise.resolve();
      host.activities.close();
      await host.stopServing(error as Error);
      memory.close();
      throw error;
    }
    host.begin();
    return host;
  }

  /** @param made - has the host as soon as there is one; before that nothing is asked or told */
  private static memoryOf(
    options: WorkerHostOptions,
    made: { readonly host?: WorkerHost },
  ): WorkerMemory {
    const {
      memoryLimitBytes: limitBytes = 0,
      store,
      executor,
      clock,
      log,
      measureMemory,
    } = options;
    return new WorkerMemory(
      {
        address: () => made.host?.address ?? options.listenAddress,
        limitBytes,
        store,
        executor,
        clock,
        log,
        measure: measureMemory,
        isIdle: () => made.host?.isIdle ?? true,
        onMode: (mode) => made.host?.onMemoryMode(mode),
        onLost: (key) => made.host?.onDataLost(key),
        onTooMuch: (error) => made.host?.giveUp(error),
      },
      options.memory,
    );
  }

  /** Where peers reach it. */
  get address(): string {
    return this.identity.address;
  }

  get name(): string {
    return this.identity.name;
  }

  private get status(): WorkerStatus {
    const { wantedStatus } = this;
    return wantedStatus === 'running' && this.memoryMode === 'paused' ? 'paused' : wantedStatus;
  }

  /** Tells the scheduler, gives up what runs, and closes the executor. */
  close(reason = 'asked to close'): Promise<void> {
    this.closing ??= this.shutDown({ reason });
    return this.closing;
  }

  /**
   * Asks the scheduler to take it out of service and to move what only it holds to other workers.
   * Never rejects: what was not moved in time is computed again elsewhere.
   *
   * @param timeoutMs - milliseconds to wait for that
   */
  async retire(timeoutMs: number): Promise<void> {
    const { channel, address, kernel } = this;
    if (channel?.isClosed !== false || kernel.tables.tasks.size === 0) return;
    const parameters = { workers: [address], close: false };
    try {
      const request = { command: 'amm.retireWorkers', parameters };
      await channel.request('command', request, timeoutMs);
    } catch (error) {
      if (this.closing !== undefined) return;
      this.options.log.warn({ err: error, address }, 'the worker closes with results on it');
    }
  }

  /** Publishes a message under topics on the scheduler. */
  logEvent(topics: readonly string[], message: unknown): void {
    this.report({ op: 'log-event', topics, message });
  }

  private async register(network: Network): Promise<void> {
    const { clock, connectTimeoutMs = CONNECT_TIMEOUT_MS, schedulerAddress } = this.options;
    this.channel = await openChannel(
      network,
      { address: schedulerAddress, role: 'worker' },
      {
        onMessage: (message) => this.onMessage(message as unknown as ToWorkerMessage),
        onRequest: (method, parameters) => this.inspection.answer(method, parameters),
        onClose: (error) => this.onSchedulerGone(error),
      },
      () => this.drain(),
    );
    const askedMs = clock.nowMs();
    const request: RegisterWorkerRequest = {
      identity: this.identity,
      status: this.status,
      metrics: this.metrics(),
    };
    const reply = await this.channel.request<RegisterWorkerReply>(
      'register-worker',
      { ...request },
      connectTimeoutMs,
    );
    this.clockOffsetMs = reply.nowMs - (askedMs + clock.nowMs()) / 2;
    const { timers } = this;
    timers.push(every(clock, reply.heartbeatIntervalMs, () => this.heartbeat()));
    const { memory } = this;
    if (memory.isLimited) timers.push(every(clock, memory.monitorIntervalMs, () => memory.poll()));
    timers.push(every(clock, FIND_MISSING_MS, () => this.findMissing()));
    timers.push(every(clock, KEEP_ALIVE_MS, () => this.report({ op: 'keep-alive' })));
  }

  private begin(): void {
    this.hasStarted = true;
    const { address, name } = this;
    const { schedulerAddress: scheduler } = this.options;
    this.options.log.info({ address, name, scheduler }, 'worker registered');
    if (this.channel?.isClosed === true) this.onSchedulerGone(undefined);
    this.drain();
  }

  private onMessage(message: ToWorkerMessage): void {
    switch (message.op) {
      case 'worker-status-change':
        this.changeStatus(message.status, message.stimulusId);
        break;
      case 'close':
        this.closing ??= this.shutDown({
          reason: `the scheduler asked for it: ${message.reason}`,
          restart: message.restart === true,
        });
        break;
      case 'remove-worker':
        this.listening.peers.drop(message.worker);
        this.inbox.push(message);
        break;
      case 'compute-task':
      case 'free-keys':
      case 'steal-request':
      case 'set-priority':
      case 'acquire-replicas':
      case 'remove-replicas':
      case 'refresh-who-has':
        this.inbox.push(message); // Handled at the end of the batch.
        break;
      default: {
        const { op } = message as { op?: unknown };
        this.options.log.warn({ op }, 'the scheduler sent a message that this worker ignores');
      }
    }
  }

  private changeStatus(status: WorkerStatus, stimulusId: string): void {
    if (status === this.wantedStatus) return;
    this.adapt(stimulusId, () => (this.wantedStatus = status));
  }

  private onMemoryMode(mode: MemoryMode): void {
    this.adapt(this.nameEvent(`memory-${mode}`), () => (this.memoryMode = mode));
    this.drain();
  }

  /** Brings the machine, and what the scheduler knows, in line with a change. */
  private adapt(stimulusId: string, change: () => void): void {
    const before = this.status;
    const paceBefore = this.pace;
    change();
    const { status, pace } = this;
    if (pace !== paceBefore) this.inbox.push({ op: pace, stimulusId });
    if (status !== before) this.report({ op: 'worker-status-change', status });
  }

  private get pace(): 'pause' | 'crawl' | 'unpause' {
    if (this.status !== 'running') return 'pause';
    return this.memoryMode === 'crawling' ? 'crawl' : 'unpause';
  }

  /** Nothing occupies a thread and nothing is on its way. What has seceded may wait for others. */
  private get isIdle(): boolean {
    const { occupiedThreads, transferCount } = this.kernel.tables;
    return occupiedThreads === 0 && transferCount === 0;
  }

  private feed(event: WorkerEvent): void {
    this.inbox.push(event);
    this.drain();
  }

  /** Handles what has come; what that causes at once is handled too, after it. */
  private drain(): void {
    if (this.isDraining || !this.hasStarted) return;
    this.isDraining = true;
    try {
      while (this.inbox.length > 0 && this.closing === undefined) {
        const events = this.inbox.splice(0);
        const instructions = this.kernel.handleAll(events, this.options.clock.nowMs());
        for (const instruction of instructions) this.carryOut(instruction);
      }
    } catch (cause) {
      this.fail(cause);
    } finally {
      this.isDraining = false;
    }
  }

  private carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'execute':
        return this.activities.execute(instruction);
      case 'gather':
        return this.activities.gather(instruction);
      case 'abort-execution':
        return this.activities.abortExecution(instruction);
      case 'rejoined':
        return this.activities.rejoined(instruction.key);
      case 'retry-busy-later':
        return this.activities.retryBusyLater(instruction.worker);
      case 'drop-data':
        this.memory.store.delete(instruction.key);
        return;
      case 'send':
        this.channel?.send(instruction.message);
    }
  }

  private report(report: UnnamedReport): void {
    const stimulusId = this.nameEvent(report.op);
    this.channel?.send({ ...report, stimulusId });
  }

  private heartbeat(): void {
    this.report({
      op: 'heartbeat-worker',
      metrics: this.metrics(),
      executing: this.activities.executing(),
      workerNowMs: this.options.clock.nowMs(),
    });
  }

  private findMissing(): void {
    if (this.kernel.tables.missing.size === 0) return;
    this.feed({ op: 'find-missing', stimulusId: this.nameEvent('find-missing') });
  }

  private metrics(): WorkerMetrics {
    const bandwidth = this.activities.takeBandwidth();
    return {
      ...this.memory.figures(),
      managedBytes: this.kernel.tables.nbytes,
      ...(bandwidth === undefined ? {} : { bandwidth }),
    };
  }

  /** While paused it gives to one at a time, so that its memory can shrink. */
  private get outgoingMax(): number {
    if (this.status === 'paused') return 1;
    return this.options.outgoingTransfersMax ?? OUTGOING_TRANSFERS_MAX;
  }

  private onDataLost(key: string): void {
    this.feed({ op: 'data-lost', keys: [key], stimulusId: this.nameEvent('data-lost') });
  }

  private putData(keys: readonly string[], values: readonly Uint8Array[]): void {
    takeIn({ tables: this.kernel.tables, store: this.memory.store }, keys, values);
    const nbytes = values.map((value) => value.byteLength);
    this.feed({ op: 'update-data', keys, nbytes, stimulusId: this.nameEvent('update-data') });
  }

  private describe(): WireMessage {
    const { tables } = this.kernel;
    return {
      ...this.identity,
      status: this.status,
      scheduler: this.options.schedulerAddress,
      taskCount: tables.tasks.size,
      executing: [...tables.executing].map((task) => task.key),
      managedBytes: tables.nbytes,
    };
  }

  private nameEvent(what: string): string {
    return `${what}-${++this.eventCount}@${this.identity.name}`;
  }

  private onSchedulerGone(error: Error | undefined): void {
    if (!this.hasStarted || this.closing !== undefined) return;
    const { schedulerAddress } = this.options;
    const gone = new YardmasterError(
      'ERR_CLOSED',
      `the scheduler ${schedulerAddress} closed the connection${error === undefined ? '' : `: ${error.message}`}`,
      { scheduler: schedulerAddress },
      error === undefined ? {} : { cause: error },
    );
    this.options.log.error({ err: gone, address: this.address }, 'worker closes');
    this.closing = this.shutDown({ reason: gone.message, error: gone });
  }

  /** As if it had died: what it was processing may be the reason, so the scheduler shall count it. */
  private giveUp(error: YardmasterError): void {
    if (this.closing !== undefined) return;
    this.options.log.error({ err: error, ...error.data }, 'worker closes');
    this.channel?.abort(error);
    this.closing = this.shutDown({ reason: error.message, error });
  }

  /** The machine is broken: better no worker than one that does something else than it says. */
  private fail(cause: unknown): void {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const error = new YardmasterError(
      'ERR_INVARIANT',
      `the worker ${this.address} closes: ${reason}`,
      YardmasterError.is(cause) ? cause.data : {},
      { cause },
    );
    this.giveUp(error);
  }

  private async shutDown(end: WorkerEnd): Promise<void> {
    for (const timer of this.timers) timer.cancel();
    this.activities.close();
    const { channel } = this;
    if (channel?.isClosed === false) {
      // The scheduler then knows that the goodbye is meant.
      this.report({ op: 'worker-status-change', status: 'closing' });
      await this.attempt('the scheduler', () => channel.close());
    }
    await this.stopServing(end.error);
    await this.attempt('the executor', () => this.options.executor.close());
    this.memory.close();
    this.wantedStatus = 'closed';
    this.resolveFinished(end);
    this.options.onClose?.(end);
  }

  private async stopServing(error: Error | undefined): Promise<void> {
    const { listener, server, peers } = this.listening;
    peers.close();
    await this.attempt('the listener', () => listener.close());
    if (error === undefined) await this.attempt('peers', () => server.close());
    server.abort(error ?? new YardmasterError('ERR_CLOSED', `${this.address} closes`));
    this.channel?.abort(error ?? new YardmasterError('ERR_CLOSED', `${this.address} closes`));
  }

  private async attempt(what: string, close: () => Promise<void>): Promise<void> {
    try {
      await withTimeout(this.options.clock, close(), CLOSE_TIMEOUT_MS, () => {
        return new YardmasterError('ERR_TIMEOUT', `closing ${what} took too long`);
      });
    } catch (error) {
      this.options.log.warn({ err: error }, `${what} could not be closed in good order`);
    }
  }
}

type UnnamedReport = WorkerReport extends infer R
  ? R extends WorkerReport
    ? Omit<R, 'stimulusId'>
    : never
  : never;
