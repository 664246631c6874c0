import { inBackground } from '../shared/background.ts';
import { randomUUID } from 'node:crypto';
import type { Channel } from '../api/channel.ts';
import type { Clock } from '../api/clock.ts';
import { ACTIVE_MEMORY_MANAGER, type ActiveMemoryManager } from '../api/amm-manager.ts';
import type { YardmasterError } from '../api/errors.ts';
import type { EventSource } from '../api/events.ts';
import type { Caller, Logger, NewStimulus } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { Connection, ConnectionHandlers, Transport } from '../api/transport.ts';
import { configError } from '../config/errors.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/types.ts';
import type { Insight } from '../kernel/insight/insight.ts';
import type { KernelPorts } from '../kernel/ports.ts';
import { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { TransitionRecord } from '../kernel/insight/story.ts';
import type { GatherReply, RemotePlugin } from '../messages/protocol.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState, LanguageOf } from '../state/cluster.ts';
import type { TaskState } from '../state/task.ts';
import { ReconnectGrace } from './sessions/reconnect-grace.ts';
import { DEFAULT_POLICIES } from '../plugin-host/loading/load-extensions.ts';
import { busHooks } from '../plugin-host/bus-hooks.ts';
import { ClientQueues } from './sessions/client-queues.ts';
import { Commands } from './commands/commands.ts';
import { crashError } from './crash-error.ts';
import { DataReservations } from './sessions/data-reservations.ts';
import { Delivery } from './delivery.ts';
import { Diagnostics } from './commands/diagnostics.ts';
import { closedError, Listeners } from './sessions/listeners.ts';
import { EventLog } from './event-log.ts';
import { Extensions, type ExtensionsHost } from '../plugin-host/extensions.ts';
import { Gatherer } from './gatherer.ts';
import { HostTimers } from './host-timers.ts';
import { IdleWatch } from './idle-watch.ts';
import type { PartsRelay } from './parts-relay.ts';
import { checkStimulus } from './sessions/message-validation.ts';
import { kernelOptions } from './kernel-options.ts';
import { LogBook } from '../host/log-book.ts';
import { SlowStimulusMonitor } from './slow-stimulus-monitor.ts';
import { type SchedulerPolicies, PolicyAdmin } from './commands/policy-admin.ts';
import type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-info.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { Preloads } from '../plugin-host/loading/preloads.ts';
import { ProblemList } from '../plugin-host/loading/problem-list.ts';
import { connectedNodeWorkers, type SessionHost, type Sessions } from './sessions/sessions.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { TransportTable } from '../host/transport-table.ts';
import { WorkerCommands } from './commands/worker-commands.ts';
import { WorkerLosses } from './sessions/worker-losses.ts';
import { WorkerPluginRegistry } from './commands/worker-plugin-registry.ts';

/**
 * A running scheduler: connections, timers and plugins around one kernel. Stimuli are handled one by one and
 * completely: the messages of one are sent before the next is handled, and its events are emitted then.
 */
export class SchedulerHost implements Scheduler, ExtensionsHost, SessionHost {
  readonly serverId = `scheduler-${randomUUID()}`;
  readonly clock: Clock;
  readonly config: Config;
  readonly sessions: Sessions = {
    all: new Set(),
    workers: new Map(),
    clients: new Map(),
    messageBytesMax: Infinity,
  };
  readonly reconnectGrace: ReconnectGrace;
  readonly losses: WorkerLosses;
  /** Set by {@link boot}. */
  kernel!: SchedulerKernel;
  crash: YardmasterError | undefined;

  private readonly log: Logger;
  private readonly logBook: LogBook;
  private readonly extensions: Extensions;
  private readonly transports: TransportTable;
  private readonly eventLog: EventLog;
  private readonly queue = new StimulusQueue();
  private readonly clientQueues: ClientQueues;
  private readonly slowStimuli: SlowStimulusMonitor;
  private readonly delivery: Delivery;
  private readonly listeners: Listeners;
  private readonly timers: HostTimers;
  private ports!: KernelPorts;
  private gatherer!: Gatherer;
  private idleWatch!: IdleWatch;
  private commands!: Commands;
  private policyAdmin!: PolicyAdmin;
  private reservations!: DataReservations;
  private preloads: Preloads | undefined;
  private readonly workerPluginRegistry = new WorkerPluginRegistry({
    kind: 'worker',
    workers: () => connectedNodeWorkers(this.sessions, this.cluster),
  });
  private readonly nannyPluginRegistry = new WorkerPluginRegistry({
    kind: 'nanny',
    workers: () =>
      connectedNodeWorkers(this.sessions, this.cluster, ({ identity }) => {
        return identity.nanny !== undefined;
      }),
  });
  private languageOf: LanguageOf | undefined;
  private arePortsStale = false;
  /** What waits for the end of the present stimulus. */
  private readonly changes: (() => void)[] = [];
  /** No stimulus is handled any more. */
  private isStopped = false;
  private closing: Promise<void> | undefined;
  constructor(
    private readonly loaded: LoadedConfig,
    private readonly options: CreateSchedulerOptions & { readonly log: Logger },
  ) {
    this.clock = options.clock;
    this.logBook = new LogBook(options.log, this.clock);
    this.log = this.logBook;
    this.config = loaded.config;
    this.eventLog = new EventLog(this.config.scheduler.eventLogLength);
    this.reconnectGrace = new ReconnectGrace(this.clock, this.config.scheduler.clientGrace);
    this.losses = new WorkerLosses(this.clock, (stimulus) => this.accept(stimulus));
    this.extensions = new Extensions(loaded, { ...options, log: this.logBook }, this);
    this.delivery = new Delivery({
      sessions: this.sessions,
      bus: this.extensions.bus,
      eventLog: this.eventLog,
      clock: this.clock,
      eventLogged: () => this.ports.hooks.eventLogged,
      enqueue: (stimulus) => this.accept(stimulus),
      report: (error) => this.report(error),
    });
    this.clientQueues = this.makeLines();
    this.slowStimuli = new SlowStimulusMonitor(
      this.clock,
      this.log,
      () => this.extensions.policyNames,
    );
    this.timers = new HostTimers(this.clock, (stimulus) => this.accept(stimulus));
    this.transports = new TransportTable(
      this.clock,
      options.builtins,
      options.transports,
      options.fallbackTransports,
    );
    this.listeners = new Listeners(this, this.transports, this.log);
  }

  get cluster(): ClusterState {
    return this.kernel.cluster;
  }

  get insight(): Insight {
    return this.kernel.insight;
  }

  get events(): EventSource {
    return this.extensions.bus;
  }

  get plugins(): readonly PluginInfo[] {
    return this.extensions.infos;
  }

  get transport(): Transport | undefined {
    return this.transports.configured;
  }

  get amm(): ActiveMemoryManager {
    return this.extensions.service(ACTIVE_MEMORY_MANAGER);
  }

  get policies(): SchedulerPolicies {
    return this.policyAdmin;
  }

  /**
   * Loads and checks everything that the configuration names; nothing of it runs.
   * @throws YardmasterError with every problem
   */
  async load(): Promise<void> {
    const { loaded, extensions } = this;
    const { origin } = loaded;
    const problems = new ProblemList(origin);
    const { transport, preload } = this.config.scheduler;
    if (transport !== undefined) {
      const at = ['scheduler', 'transport'];
      await problems.attempt(at, () =>
        this.transports.addConfigured(transport, extensions.resolver, {
          origin,
          optionsAt: [...at, 'options'],
        }),
      );
    }
    await problems.attempt(undefined, async () => {
      const place = { origin, at: ['scheduler', 'preload'] };
      const context = { role: 'scheduler', clock: this.clock, log: this.log } as const;
      this.preloads = await Preloads.load(preload, extensions.resolver, context, place);
    });
    await problems.attempt(undefined, () => extensions.load());
    problems.throwIfAny();
  }

  /** @throws YardmasterError `ERR_CONFIG` when nothing speaks the scheme of the configured address */
  async checkAddress(): Promise<void> {
    try {
      await this.transports.for(this.config.scheduler.address);
    } catch (error) {
      const message = `cannot be used: ${(error as Error).message}`;
      throw configError([{ at: ['scheduler', 'address'], message }], this.loaded.origin);
    }
  }

  /** Loads and starts everything but connections. When it fails, nothing is left behind. */
  async boot(): Promise<void> {
    try {
      await this.load();
      await this.preloads?.setUp();
      for (const note of this.loaded.notes) this.log.warn({}, note);
      this.makeKernel();
      await this.extensions.start();
      this.startTimers();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  bootReport(): string {
    const { notes } = this.loaded;
    const clientQueues = notes.map((note) => `  ${note}`);
    return [this.extensions.report(), ...(notes.length === 0 ? [] : ['but', ...clientQueues])].join(
      '\n',
    );
  }

  listen(address: string = this.config.scheduler.address): Promise<string> {
    return this.listeners.listen(address);
  }

  connectLocal(from: string, open: (connection: Connection) => ConnectionHandlers): Connection {
    return this.listeners.connectLocal(from, open);
  }

  addPlugin(plugin: string | object, options: AddPluginOptions = {}): Promise<string> {
    return this.extensions.addPlugin(plugin, options);
  }

  removePlugin(name: string): Promise<void> {
    return this.extensions.removePlugin(name);
  }

  replacePolicy(
    slot: SlotName,
    policy: string | object,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.extensions.replacePolicy(slot, policy, options);
  }

  enqueue(stimulus: NewStimulus & { readonly stimulusId?: string }): void {
    checkStimulus(stimulus);
    this.accept(stimulus);
  }

  accept(stimulus: NewStimulus & { readonly stimulusId?: string }): void {
    if (!this.isStopped && !this.clientQueues.takes(stimulus)) this.handleNext(stimulus);
  }

  get workerPlugins(): readonly RemotePlugin[] {
    return this.workerPluginRegistry.all;
  }

  get nannyPlugins(): readonly RemotePlugin[] {
    return this.nannyPluginRegistry.all;
  }

  nextStimulusId(op: string): string {
    return this.queue.nextId(op);
  }

  settled(client: string): Promise<void> | undefined {
    return this.clientQueues.settled(client);
  }

  story(...keysOrStimuli: string[]): TransitionRecord[] {
    return this.kernel.story(...keysOrStimuli);
  }

  command(name: string, parameters?: unknown, caller: Caller = {}): unknown {
    this.checkOpen();
    return this.commands.run(name, parameters, caller);
  }

  gather(keys: readonly string[], relay?: PartsRelay): Promise<GatherReply> {
    return this.gatherer.gather(keys, relay);
  }

  portsChanged(): void {
    if (this.isStopped) return;
    if (this.queue.isBusy) this.arePortsStale = true;
    else this.replacePorts();
  }

  report(error: YardmasterError): void {
    this.log.error({ err: error, code: error.code, ...error.data }, error.message);
    this.extensions.bus.emit('error', error);
  }

  setLanguages(languageOf: LanguageOf | undefined, only?: LanguageOf): void {
    if (only !== undefined && only !== this.languageOf) return;
    this.languageOf = languageOf;
    // Plugins are set up before there is a kernel.
    const kernel = this.kernel as SchedulerKernel | undefined;
    if (kernel !== undefined) kernel.cluster.languageOf = languageOf;
  }

  close(): Promise<void> {
    this.listeners.stopAccepting();
    this.closing ??= this.shutDown();
    return this.closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private handleNext(stimulus: NewStimulus & { readonly stimulusId?: string }): void {
    if (this.isStopped) return;
    this.queue.push(stimulus);
    this.queue.drain((next) => this.handle(next));
  }

  private makeLines(): ClientQueues {
    const wanted = (client: string): ReadonlySet<TaskState> =>
      this.cluster.clients.get(client)?.wantsWhat ?? new Set();
    return new ClientQueues({
      clock: this.clock,
      handle: (stimulus) => this.handleNext(stimulus),
      nextStimulusId: (op) => this.queue.nextId(op),
      intake: () => this.kernel.intake?.stimulusId,
      isUnsettled: () => !this.isStopped && this.kernel.isUnsettled,
      isTakingIn: (stimulusId) => this.kernel.isTakingIn(stimulusId),
      wantedBy: (client) => Array.from(wanted(client), ({ key }) => key),
      wantedCount: (client) => wanted(client).size,
    });
  }

  private makeKernel(): void {
    const nowMs = this.clock.nowMs();
    this.ports = this.compile();
    this.kernel = new SchedulerKernel(kernelOptions(this.config), this.ports, nowMs);
    this.kernel.cluster.languageOf = this.languageOf;
    this.gatherer = new Gatherer(this.cluster, this.clock, this.transports);
    this.policyAdmin = this.makeDesk();
    this.reservations = new DataReservations(this);
    this.idleWatch = new IdleWatch(this.kernel, this.clock);
    const channelOf = (address: string): Channel | undefined =>
      this.sessions.workers.get(address)?.channel;
    this.commands = new Commands({
      serverId: this.serverId,
      startedMs: nowMs,
      kernel: this.kernel,
      events: this.eventLog,
      lifecycle: this.extensions.lifecycle,
      addresses: () => this.listeners.addresses,
      plugins: () => this.plugins,
      enqueue: (stimulus) => this.accept(stimulus),
      policies: this.policyAdmin,
      reservations: this.reservations,
      cancelTimeoutMs: this.config.scheduling.subtaskCancelTimeout,
      idle: this.idleWatch,
      pluginRegistries: [this.workerPluginRegistry, this.nannyPluginRegistry],
      diagnostics: new Diagnostics({
        kernel: this.kernel,
        events: this.eventLog,
        logBook: this.logBook,
        plugins: () => this.plugins,
        channelOf,
      }),
      workerCommands: new WorkerCommands({
        cluster: this.cluster,
        clock: this.clock,
        channelOf,
        enqueue: (stimulus) => this.accept(stimulus),
        isStopped: () => this.isStopped,
        connections: () => ({
          workers: this.sessions.workers.size,
          clients: this.sessions.clients.size,
          all: this.sessions.all.size,
          toWorkers: this.gatherer.connectionCount,
        }),
      }),
      executingOn: (address) => this.gatherer.executingOn(address),
    });
  }

  private makeDesk(): PolicyAdmin {
    const { extensions, options, insight } = this;
    insight.recordDecisions(this.config.scheduler.decisionLogLength);
    for (const [slot, shadow] of extensions.shadows) insight.startShadow(slot, shadow);
    return new PolicyAdmin({
      insight,
      policyNames: () => extensions.policyNames,
      builtinNames: Object.keys(options.builtins),
      loadPolicy: (slot, policy, given) => extensions.loadPolicy(slot, policy, given),
      replacePolicy: (slot, policy, given) => this.replacePolicy(slot, policy, given),
      configured: (slot) => this.config.scheduler.policies[slot] ?? { use: DEFAULT_POLICIES[slot] },
      pluginIn: (slot) => extensions.pluginIn(slot),
      offered: (slot) => this.config.scheduler.clientPolicies[slot] ?? {},
      configuredShadows: this.config.scheduler.shadows,
      between: (change) => {
        if (this.queue.isBusy) this.changes.push(change);
        else change();
      },
    });
  }

  private compile(): KernelPorts {
    const { extensions } = this;
    return extensions.compile(busHooks(extensions.bus, (address) => this.gatherer.drop(address)));
  }

  private replacePorts(): void {
    this.arePortsStale = false;
    try {
      this.ports = this.compile();
      this.kernel.replacePorts(this.ports);
    } catch (cause) {
      this.stopBecause('the policies could not be replaced', cause);
      return;
    }
    const { unrunnable, queued } = this.cluster;
    if (unrunnable.size + queued.size > 0) this.accept({ op: 'policies-replaced' });
  }

  private handle(stimulus: Stimulus): void {
    this.extensions.hooks.stimulusId = stimulus.stimulusId;
    this.extensions.bus.hold();
    const nowMs = this.clock.nowMs();
    try {
      this.delivery.deliver(this.kernel.handle(stimulus, nowMs), stimulus);
    } catch (cause) {
      const { op, stimulusId } = stimulus;
      this.stopBecause(`the stimulus ${stimulusId} (${op}) could not be handled`, cause);
    }
    if (this.arePortsStale) this.replacePorts();
    if (this.changes.length > 0) for (const change of this.changes.splice(0)) change();
    this.extensions.bus.release();
    this.slowStimuli.finished(stimulus, nowMs);
    this.clientQueues.handled(stimulus);
    this.reservations.handled(stimulus);
  }

  /** Called when the state is not to be trusted any more: reports the cause and closes. */
  stopBecause(what: string, cause: unknown): void {
    if (this.isStopped) return;
    const error = crashError(what, cause);
    this.isStopped = true;
    this.queue.clear();
    this.clientQueues.clear();
    this.crash = error;
    this.report(error);
    try {
      this.options.onCrash?.(error);
    } catch (thrown) {
      this.log.error({ err: thrown }, 'onCrash threw');
    }
    inBackground(this.close(), 'the scheduler could not close in good order');
  }

  private startTimers(): void {
    this.timers.start(this.config.scheduler, this.idleWatch, (sinceMs) => {
      const reason = 'idle-timeout-exceeded';
      this.log.info({ reason, sinceMs }, 'the scheduler closes: it had nothing to do for too long');
      inBackground(this.close(), 'the scheduler could not close in good order');
    });
  }

  private async shutDown(): Promise<void> {
    await this.extensions.beforeClose();
    this.isStopped = true;
    this.clientQueues.clear();
    this.timers.cancel();
    this.reconnectGrace.clear();
    await this.extensions.lifecycle.closeAll();
    await this.listeners.close();
    (this.gatherer as Gatherer | undefined)?.close();
    (this.commands as Commands | undefined)?.close(closedError());
    this.extensions.bus.emit('closed');
    try {
      await this.extensions.dispose();
    } catch (error) {
      this.log.warn({ err: error }, 'something failed while the scheduler closed');
    }
    await this.preloads?.close();
  }

  checkOpen(): void {
    if (this.closing !== undefined || this.isStopped) throw closedError();
  }
}
