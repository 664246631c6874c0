import { inBackground } from '../shared/background.ts';
import { randomUUID } from 'node:crypto';
import { every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { RECONNECT_TIMEOUT_MS } from '../shared/reconnect.ts';
import type { WireMessage } from '../api/transport.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import type { WorkerIdentity, WorkerMetrics } from '../state/worker.ts';
import type { Instruction, WorkerEvent } from '../worker/events/events.ts';
import type { MemoryMode } from '../worker/memory/governor.ts';
import { heldResults, resultsOf } from '../worker/events/on-scheduler.ts';
import { hostOf } from '../worker/peer.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { answerActorCall } from './actor-calls.ts';
import { DataServer } from './data-server.ts';
import { LogBook } from '../host/log-book.ts';
import { type Network, PeerChannels, transportFor } from './peer-channels.ts';
import { WorkerActivities } from './worker-activities.ts';
import { broken, notBack, schedulerGone } from './worker-errors.ts';
import { WorkerEnding } from './worker-ending.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerInspection } from './worker-inspection.ts';
import { takeIn } from './worker-intake.ts';
import { type LinkedWorker, WorkerLink } from './worker-link.ts';
import type { WorkerMemory } from './worker-memory.ts';
import { kernelSettings, memoryOf } from './worker-parts.ts';
import { identityOf, type WorkerEnd, type WorkerHostOptions } from './worker-options.ts';
import { WorkerStatusTracker } from './worker-status-tracker.ts';
import { WorkerPlugins } from './worker-plugins.ts';
import { Closer, WorkerServing } from './worker-serving.ts';

export type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';

const FIND_MISSING_MS = 1000;
const CONNECT_TIMEOUT_MS = 10_000;
const OUTGOING_TRANSFERS_MAX = 50;

/** What a worker is put together from. */
interface Parts {
  readonly options: WorkerHostOptions & { readonly log: LogBook };
  readonly identity: WorkerIdentity;
  readonly kernel: WorkerKernel;
  readonly memory: WorkerMemory;
  readonly network: Network;
  readonly serving: WorkerServing;
  readonly closer: Closer;
}

/**
 * A running worker: connections, timers, an executor and a store around one machine ({@link
 * WorkerKernel}). The scheduler's messages and the outcomes of runs and transfers become events;
 * the machine's instructions are carried out here.
 *
 * It closes when the scheduler asks for it, when the connection to the scheduler has ended and
 * reconnecting is not configured, and when its machine finds itself broken.
 */
export class WorkerHost {
  /** Resolves when it has closed, however that came. */
  readonly finished: Promise<WorkerEnd>;
  readonly identity: WorkerIdentity;
  private readonly options: Parts['options'];
  private readonly kernel: WorkerKernel;
  private readonly memory: WorkerMemory;
  private readonly link: WorkerLink;
  private readonly pace: WorkerStatusTracker;
  private readonly activities: WorkerActivities;
  private readonly inspection: WorkerInspection;
  private readonly plugins: WorkerPlugins;
  private readonly timers: Timer[] = [];
  /** Open while it is registered: before that, messages of the scheduler wait. */
  private readonly inbox: WorkerInbox;
  private readonly ending: WorkerEnding;

  private constructor(private readonly parts: Parts) {
    const { options, identity, kernel, memory, network, serving } = parts;
    const { executor, clock, log, schedulerAddress } = options;
    this.options = options;
    this.identity = identity;
    this.kernel = kernel;
    this.memory = memory;
    const link = new WorkerLink(network, schedulerAddress, this.linked());
    this.link = link;
    const inbox = new WorkerInbox({
      kernel,
      clock,
      carryOut: (instruction) => this.carryOut(instruction),
      onBroken: (cause) => this.fail(cause),
    });
    this.inbox = inbox;
    this.pace = new WorkerStatusTracker({
      onPace: (op, stimulusId) => this.inbox.put({ op, stimulusId }),
      onStatus: (status) => {
        link.report({ op: 'worker-status-change', status });
        this.plugins.call('statusChanged', status);
      },
    });
    this.plugins = new WorkerPlugins({
      identity,
      clock,
      log,
      folder: options.folder ?? process.cwd(),
      results: () => resultsOf(kernel.tables),
      logEvent: (topics, message) => this.logEvent(topics, message),
      observe: (observer) => (kernel.observer = observer),
      onCrash: (error) => this.giveUp(error),
    });
    this.inspection = new WorkerInspection({
      kernel,
      executor,
      logBook: log,
      describe: () => this.describe(),
      connections: () => serving.connections(),
      executing: () => this.activities.executing(),
    });
    executor.onActorLost = (key) => this.onDataLost(key);
    this.activities = new WorkerActivities({
      address: identity.address,
      executor,
      store: memory.store,
      clock,
      log,
      peers: serving.peers,
      nameEvent: (what) => link.nameEvent(what),
      feed: (event) => inbox.feed(event),
      onGarbage: (nbytes) => memory.noteGarbage(nbytes),
      feedSoon: (event) => inbox.feedSoon(event),
      clockOffsetMs: () => link.clockOffsetMs,
    });
    this.ending = new WorkerEnding({
      ...{ link, plugins: this.plugins, serving, executor, memory, closer: parts.closer },
      stopWork: () => this.stopWork(),
      onEnd: (end) => {
        this.pace.end();
        options.onClose?.(end);
      },
    });
    this.finished = this.ending.finished;
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
      outgoingMax: (peer) => made.host?.outgoingMax(peer) ?? 0,
      onPutData: (keys, values) => made.host?.putData(keys, values),
      onActorCall: (call) => answerActorCall(options.executor, call),
      identity: () => ({ ...made.host?.describe() }),
      onGarbage: (nbytes) => memory.noteGarbage(nbytes),
    });
    const listener = await transportFor(network, listenAddress).listen(
      listenAddress,
      (connection) => server.accept(connection),
    );
    const identity = identityOf(options, listener.address, serverId);
    const kernel = new WorkerKernel(kernelSettings(options, identity));
    const closer = new Closer(clock, options.log);
    const serving = new WorkerServing(listener, server, new PeerChannels(network), closer);
    const parts = { options, identity, kernel, memory, network, serving, closer };
    const host = new WorkerHost(parts);
    made.host = host;
    try {
      await host.plugins.start(options.plugins ?? []);
      const { workerPlugins = [], nannyPlugins = [] } = await host.link.register();
      await host.plugins.agree(workerPlugins);
      await options.nannyPlugins?.agree(nannyPlugins);
    } catch (error) {
      await host.ending.abandon(error as Error);
      throw error;
    }
    host.begin();
    return host;
  }

  /** @param made - contains the host as soon as it exists; the memory makes no call before */
  private static memoryOf(
    options: WorkerHostOptions,
    made: { readonly host?: WorkerHost },
  ): WorkerMemory {
    return memoryOf(options, {
      address: () => made.host?.address ?? options.listenAddress,
      isIdle: () => made.host?.isIdle ?? true,
      onMode: (mode) => made.host?.onMemoryMode(mode),
      onMeasured: (processBytes) =>
        made.host?.feed({ op: 'memory-measured', processBytes, stimulusId: 'memory-measured' }),
      onLost: (key) => made.host?.onDataLost(key),
      onTooMuch: (error) => made.host?.onTooMuch(error) ?? false,
    });
  }

  /** Where peers reach it. */
  get address(): string {
    return this.identity.address;
  }

  get name(): string {
    return this.identity.name;
  }

  /**
   * Notifies the scheduler, aborts the runs, and closes the executor.
   * @param end - why, and whether another worker shall take its place
   */
  close(end: Omit<WorkerEnd, 'error'> = { reason: 'asked to close' }): Promise<void> {
    return this.ending.begin(end);
  }

  /**
   * Asks the scheduler to take it out of service and to move what only it holds to other workers.
   * Never rejects: what was not moved in time is computed again elsewhere.
   *
   * @param timeoutMs - milliseconds to wait for that
   */
  async retire(timeoutMs: number): Promise<void> {
    const { link, address, kernel } = this;
    if (link.isClosed || kernel.tables.tasks.size === 0) return;
    try {
      await link.retire(timeoutMs);
    } catch (error) {
      if (this.ending.hasBegun) return;
      this.options.log.warn({ err: error, address }, 'the worker closes with results on it');
    }
  }

  /** Publishes a message under topics on the scheduler. */
  logEvent(topics: readonly string[], message: unknown): void {
    this.link.report({ op: 'log-event', topics, message });
  }

  /** What the scheduler asks of the nanny's plugins. */
  private forNanny(parameters: WireMessage): Promise<WireMessage> {
    const { nannyPlugins } = this.options;
    if (nannyPlugins !== undefined) return nannyPlugins.answer(parameters);
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `the worker ${this.name} has no nanny that could have plugins; start it with one`,
      { worker: this.name },
    );
  }

  private linked(): LinkedWorker {
    return {
      identity: this.identity,
      status: () => this.pace.status,
      metrics: () => this.metrics(),
      executing: () => this.activities.executing(),
      onMessage: (message) => this.onMessage(message),
      onRequest: (method, parameters) => {
        if (method === 'worker-plugin') return this.plugins.answer(parameters);
        if (method === 'nanny-plugin') return this.forNanny(parameters);
        return this.inspection.answer(method, parameters);
      },
      onBatchEnd: () => this.inbox.drain(),
      onGone: (error) => this.onSchedulerGone(error),
      held: () => heldResults(this.kernel.tables),
      onOtherScheduler: () => this.forgetAll(),
    };
  }

  private begin(): void {
    if (this.ending.hasBegun) return; // It was asked to close while its plugins were set up.
    this.inbox.open();
    const { address, name, memory, timers, link } = this;
    const { schedulerAddress: scheduler, clock, log } = this.options;
    if (memory.isLimited) timers.push(every(clock, memory.monitorIntervalMs, () => memory.poll()));
    timers.push(every(clock, FIND_MISSING_MS, () => this.findMissing()));
    log.info({ address, worker: name, scheduler }, 'worker registered');
    if (link.isClosed) this.onSchedulerGone(undefined);
    this.inbox.drain();
  }

  private onMessage(message: ToWorkerMessage): void {
    switch (message.op) {
      case 'worker-status-change':
        this.pace.want(message.status, message.stimulusId);
        break;
      case 'close':
        // A scheduler that closes may be started again.
        if (this.reconnects && message.reason === 'scheduler-close') break;
        this.end({
          reason: `the scheduler asked for it: ${message.reason}`,
          restart: message.restart === true,
        });
        break;
      case 'remove-worker':
        this.parts.serving.peers.drop(message.worker);
        this.inbox.put(message);
        break;
      case 'compute-task':
      case 'free-keys':
      case 'steal-request':
      case 'set-priority':
      case 'acquire-replicas':
      case 'remove-replicas':
      case 'refresh-who-has':
        this.inbox.put(message); // Handled at the end of the batch.
        break;
      default: {
        const { op } = message as { op?: unknown };
        this.options.log.warn({ op }, 'the scheduler sent a message that this worker ignores');
      }
    }
  }

  private onMemoryMode(mode: MemoryMode): void {
    this.pace.allow(mode, this.link.nameEvent(`memory-${mode}`));
    this.inbox.drain();
  }

  /** Nothing occupies a thread and nothing is on its way. What has seceded may wait for others. */
  private get isIdle(): boolean {
    const { occupiedThreads, transferCount } = this.kernel.tables;
    return occupiedThreads === 0 && transferCount === 0;
  }

  private feed(event: WorkerEvent): void {
    this.inbox.feed(event);
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
        return this.activities.dropData(instruction.key);
      case 'send':
        this.link.send(instruction.message);
    }
  }

  private findMissing(): void {
    if (this.kernel.tables.missing.size === 0) return;
    this.feed({ op: 'find-missing', stimulusId: this.link.nameEvent('find-missing') });
  }

  private metrics(): WorkerMetrics {
    const bandwidth = this.activities.takeBandwidth();
    return {
      ...this.memory.figures(),
      managedBytes: this.kernel.tables.nbytes,
      ...(bandwidth === undefined ? {} : { bandwidth }),
    };
  }

  /**
   * Answers under way at once: one beyond the threshold `pause`, also while it retires, because what it
   * reads from disk for others would fill its memory further. To its own host twice as many as to others.
   */
  private outgoingMax(peerAddress: string): number {
    const { isShortOfMemory, status } = this.pace;
    if (isShortOfMemory || status === 'paused') return 1;
    const max = this.options.outgoingTransfersMax ?? OUTGOING_TRANSFERS_MAX;
    return hostOf(peerAddress) === this.identity.host ? 2 * max : max;
  }

  private onDataLost(key: string): void {
    this.feed({ op: 'data-lost', keys: [key], stimulusId: this.link.nameEvent('data-lost') });
  }

  private putData(keys: readonly string[], values: readonly Uint8Array[]): void {
    takeIn({ tables: this.kernel.tables, store: this.memory.store }, keys, values);
    const nbytes = values.map((value) => value.byteLength);
    this.feed({ op: 'update-data', keys, nbytes, stimulusId: this.link.nameEvent('update-data') });
  }

  private describe(): WireMessage {
    const { tables } = this.kernel;
    return {
      ...this.identity,
      status: this.pace.status,
      scheduler: this.options.schedulerAddress,
      taskCount: tables.tasks.size,
      executing: [...tables.executing].map((task) => task.key),
      managedBytes: tables.nbytes,
    };
  }

  private onSchedulerGone(error: Error | undefined): void {
    if (!this.inbox.isOpen || this.ending.hasBegun) return;
    const gone = schedulerGone(this.options.schedulerAddress, error);
    if (this.reconnects) inBackground(this.comeBack(gone), (failed) => this.fail(failed));
    else this.closeBecause(gone);
  }

  private get reconnects(): boolean {
    return this.options.onSchedulerLost === 'reconnect';
  }

  /** What it was asked for is given up, what it has computed is kept for the scheduler. */
  private async comeBack(gone: YardmasterError): Promise<void> {
    const { log, reconnect: rules = { timeoutMs: RECONNECT_TIMEOUT_MS } } = this.options;
    const { address, link } = this;
    log.warn({ err: gone, address }, `${gone.message}; the worker tries to come back`);
    const stimulusId = link.nameEvent('scheduler-lost');
    this.pace.want('running', stimulusId);
    this.feed({ op: 'scheduler-lost', stimulusId });
    this.plugins.call('schedulerLost');
    try {
      const { value, attempts, afterMs } = await link.reconnect(rules);
      log.info({ address, attempts, afterMs }, 'the worker is back with its scheduler');
      this.plugins.call('schedulerBack');
      await this.plugins.agree(value.workerPlugins ?? []);
      await this.options.nannyPlugins?.agree(value.nannyPlugins ?? []);
    } catch (error) {
      if (!this.ending.hasBegun) this.closeBecause(notBack(gone, error));
    }
  }

  /** A different scheduler does not know its results, and may give their keys to other tasks. */
  private forgetAll(): void {
    const keys = [...this.kernel.tables.tasks.keys()];
    this.feed({ op: 'free-keys', keys, stimulusId: this.link.nameEvent('other-scheduler') });
  }

  private closeBecause(error: YardmasterError): void {
    this.options.log.error({ err: error, address: this.address }, 'worker closes');
    this.end({ reason: error.message, error });
  }

  private end(end: WorkerEnd): void {
    inBackground(this.ending.begin(end), (error) => {
      this.options.log.error({ err: error, address: this.address }, 'the worker ended badly');
    });
  }

  /**
   * Stops the run that uses the memory, if it is certain which one; otherwise the worker closes.
   */
  private onTooMuch(error: YardmasterError): boolean {
    const isStopped = this.activities.stopMemoryHog(error);
    if (!isStopped) this.giveUp(error);
    return isStopped;
  }

  /** As if it had died: what it was processing may be the reason, so the scheduler shall count it. */
  private giveUp(error: YardmasterError): void {
    if (this.ending.hasBegun) return;
    this.options.log.error({ err: error, ...error.data }, 'worker closes');
    this.link.abort(error);
    this.end({ reason: error.message, error });
  }

  /** The machine is broken: better no worker than one that does something else than it says. */
  private fail(cause: unknown): void {
    this.giveUp(broken(this.address, cause));
  }

  /** Nothing is begun any more, and what comes in is not looked at. */
  private stopWork(): void {
    for (const timer of this.timers) timer.cancel();
    this.activities.close();
    this.inspection.close();
    this.inbox.close();
  }
}
