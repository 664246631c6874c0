import { randomUUID } from 'node:crypto';
import { type Clock, every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { EventSource } from '../api/events.ts';
import type { SchedulerHooks } from '../api/hooks.ts';
import type { Logger, NewStimulus } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { Listener } from '../api/transport.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/types.ts';
import type { Outbox } from '../kernel/outbox.ts';
import type { KernelPorts } from '../kernel/ports.ts';
import { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { TransitionRecord } from '../kernel/story.ts';
import type { GatherReply } from '../messages/protocol.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import { CONFIGURATION, loadBlueprints, loadPolicies } from './boot.ts';
import { Commands } from './commands.ts';
import { compilePorts } from './compile-ports.ts';
import { Container } from './container.ts';
import { EventBus } from './event-bus.ts';
import { EventLog } from './event-log.ts';
import { AT_RUN_TIME } from './extension-options.ts';
import { Gatherer } from './gatherer.ts';
import { HookRegistry, type Observer } from './hook-table.ts';
import { kernelOptions } from './kernel-options.ts';
import type { PluginHost } from './loaded-plugin.ts';
import { blueprintOf } from './plugin-blueprint.ts';
import { PluginLifecycle } from './plugin-lifecycle.ts';
import { PluginResolver } from './plugin-resolver.ts';
import { loadPolicy } from './policy-loader.ts';
import { PolicySlotTable } from './policy-slots.ts';
import type {
  AddPluginOptions,
  CreateSchedulerOptions,
  PluginInfo,
  Scheduler,
} from './scheduler.ts';
import { Session, type SessionHost, type Sessions } from './session.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import * as tokens from './tokens.ts';
import { TransportTable } from './transport-table.ts';
import { withTimeout } from './with-timeout.ts';

/** How often it is checked whether tasks have waited too long for a worker. */
const NO_WORKERS_CHECK_MS = 250;
/** Time for a connection to send what is queued when the scheduler closes. */
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * A running scheduler: connections, timers and plugins around one kernel. Stimuli are handled one at
 * a time and completely; what they send leaves before the next, and events are told after.
 */
export class SchedulerHost implements Scheduler, PluginHost, SessionHost {
  readonly serverId = `scheduler-${randomUUID()}`;
  readonly clock: Clock;
  readonly config: Config;
  readonly sessions: Sessions = { all: new Set(), workers: new Map(), clients: new Map() };
  /** Set by {@link boot}. */
  kernel!: SchedulerKernel;
  crash: YardmasterError | undefined;

  private readonly log: Logger;
  private readonly container = Container.root();
  private readonly bus: EventBus;
  private readonly hooks: HookRegistry;
  private readonly slots: PolicySlotTable;
  private readonly resolver: PluginResolver;
  private readonly lifecycle: PluginLifecycle;
  private readonly transports: TransportTable;
  private readonly eventLog = new EventLog();
  private readonly queue = new StimulusQueue();
  private readonly listeners: Listener[] = [];
  private readonly timers: Timer[] = [];
  private ports!: KernelPorts;
  private gatherer!: Gatherer;
  private commands!: Commands;
  private arePortsStale = false;
  /** No stimulus is handled any more. */
  private isStopped = false;
  private closing: Promise<void> | undefined;
  /** Changes of plugins and policies happen one after the other. */
  private changes: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly loaded: LoadedConfig,
    private readonly options: CreateSchedulerOptions & { readonly log: Logger },
  ) {
    const { container } = this;
    this.clock = options.clock;
    this.log = options.log;
    this.config = loaded.config;
    container.provide(tokens.CLOCK, this.clock);
    container.provide(tokens.LOGGER, this.log);
    container.provide(tokens.BUILTINS, options.builtins);
    container.provide(tokens.CONFIG_FOLDER, loaded.folder);
    container.provide(tokens.CONTAINER, container);
    container.provide(tokens.HOST, this);
    container.provideClass(tokens.EVENT_BUS, EventBus);
    container.provideClass(tokens.HOOKS, HookRegistry);
    container.provideClass(tokens.SLOTS, PolicySlotTable);
    container.provideClass(tokens.RESOLVER, PluginResolver);
    container.provideClass(tokens.LIFECYCLE, PluginLifecycle);
    this.bus = container.get(tokens.EVENT_BUS);
    this.hooks = container.get(tokens.HOOKS);
    this.slots = container.get(tokens.SLOTS);
    this.resolver = container.get(tokens.RESOLVER);
    this.lifecycle = container.get(tokens.LIFECYCLE);
    this.transports = new TransportTable(this.clock, options.builtins, options.transports);
    this.hooks.onFailure = (observer, error) => this.hookFailed(observer, error);
  }

  get cluster(): ClusterState {
    return this.kernel.cluster;
  }

  get events(): EventSource {
    return this.bus;
  }

  get plugins(): readonly PluginInfo[] {
    return this.lifecycle.all.map(({ blueprint, observer, commands, owner }) => ({
      name: blueprint.name,
      source: blueprint.source,
      onError: blueprint.onError,
      enabled: !observer.isDetached,
      errorCount: observer.errorCount,
      hooks: [...observer.counters].map(([hook, counters]) => ({ hook, ...counters })),
      slots: this.slots.filledBy(owner),
      commands: [...commands.keys()],
    }));
  }

  /** Loads and starts everything but connections. When it fails, nothing is left behind. */
  async boot(): Promise<void> {
    try {
      const { loaded, options, resolver } = this;
      const { transport } = this.config.scheduler;
      if (transport !== undefined) {
        const optionsAt = ['scheduler', 'transport', 'options'];
        await this.transports.addConfigured(transport, resolver, {
          origin: loaded.origin,
          optionsAt,
        });
      }
      await loadPolicies(this.slots, resolver, loaded);
      this.makeKernel();
      const blueprints = await loadBlueprints(resolver, loaded, options.builtins);
      for (const blueprint of blueprints) await this.lifecycle.add(blueprint);
      for (const plugin of this.lifecycle.all) await this.lifecycle.start(plugin);
      this.startTimers();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  bootReport(): string {
    const { slots, lifecycle } = this;
    const filled = Object.entries(slots.current()).map(([slot, { name }]) => `- ${slot}: ${name}`);
    return ['policies', ...filled, 'plugins', lifecycle.report()].join('\n');
  }

  async listen(address: string = this.config.scheduler.address): Promise<string> {
    const transport = await this.transports.for(address);
    this.checkOpen();
    const listener = await transport.listen(address, (connection) => {
      const session = new Session(connection, this);
      if (this.closing !== undefined) connection.abort(closedError());
      return session.handlers;
    });
    this.listeners.push(listener);
    if (this.closing !== undefined) await listener.close();
    return listener.address;
  }

  addPlugin(
    plugin: string | object,
    { idempotent = false, options, onError = 'log' }: AddPluginOptions = {},
  ): Promise<string> {
    return this.change(async () => {
      const resolved = await this.resolver.resolve(plugin, 'plugin');
      const request = {
        onError,
        place: AT_RUN_TIME,
        ...(options === undefined ? {} : { options }),
      };
      const blueprint = blueprintOf(resolved, request);
      const { name } = blueprint;
      if (idempotent && this.lifecycle.get(name) !== undefined) return name;
      await this.lifecycle.start(await this.lifecycle.add(blueprint));
      this.bus.emit('plugin-added', name);
      return name;
    });
  }

  removePlugin(name: string): Promise<void> {
    return this.change(async () => {
      await this.lifecycle.remove(name);
      this.bus.emit('plugin-removed', name);
    });
  }

  replacePolicy(
    slot: SlotName,
    policy: string | object,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.change(async () => {
      const entry = { use: policy, ...(options === undefined ? {} : { options }) };
      const named = await loadPolicy(this.resolver, slot, entry, AT_RUN_TIME);
      this.slots.provide(slot, named, CONFIGURATION);
      this.portsChanged();
    });
  }

  enqueue(stimulus: NewStimulus & { readonly stimulusId?: string }): void {
    if (this.isStopped) return;
    this.queue.push(stimulus);
    this.queue.drain((next) => this.handle(next));
  }

  story(...keysOrStimuli: string[]): TransitionRecord[] {
    return this.kernel.story(...keysOrStimuli);
  }

  command(name: string, parameters?: unknown): unknown {
    this.checkOpen();
    return this.commands.run(name, parameters);
  }

  gather(keys: readonly string[]): Promise<GatherReply> {
    return this.gatherer.gather(keys);
  }

  portsChanged(): void {
    if (this.isStopped) return;
    if (this.queue.isBusy) this.arePortsStale = true;
    else this.replacePorts();
  }

  report(error: YardmasterError): void {
    this.log.error({ err: error, code: error.code, ...error.data }, error.message);
    this.bus.emit('error', error);
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private makeKernel(): void {
    const nowMs = this.clock.nowMs();
    this.ports = this.compile();
    this.kernel = new SchedulerKernel(kernelOptions(this.config.scheduler), this.ports, nowMs);
    this.gatherer = new Gatherer(this.cluster, this.clock, this.transports);
    this.commands = new Commands({
      serverId: this.serverId,
      startedMs: nowMs,
      kernel: this.kernel,
      events: this.eventLog,
      lifecycle: this.lifecycle,
      addresses: () => this.listeners.map(({ address }) => address),
      plugins: () => this.plugins,
    });
  }

  private compile(): KernelPorts {
    const { bus } = this;
    const own: Partial<SchedulerHooks> = {
      taskTransition: (task, _start, finish) => {
        if (finish === 'erred') bus.emit('task-erred', task);
      },
      graphUpdated: ({ client, tasks }) => bus.emit('graph-submitted', client, tasks.length),
      workerAdded: (worker) => bus.emit('worker-added', worker),
      workerRemoved: (worker, stimulusId) => {
        this.gatherer.drop(worker.address);
        bus.emit('worker-removed', worker, stimulusId);
      },
      workerStatusChanged: (worker) => bus.emit('worker-status', worker),
      clientAdded: (client) => bus.emit('client-added', client),
      clientRemoved: (client) => bus.emit('client-removed', client),
    };
    return compilePorts(this.slots, this.hooks, own, ({ error }) => this.report(error));
  }

  private replacePorts(): void {
    this.arePortsStale = false;
    try {
      this.ports = this.compile();
      this.kernel.replacePorts(this.ports);
    } catch (cause) {
      this.stopBecause('the policies could not be replaced', cause);
    }
  }

  private handle(stimulus: Stimulus): void {
    this.hooks.stimulusId = stimulus.stimulusId;
    this.bus.hold();
    try {
      this.deliver(this.kernel.handle(stimulus, this.clock.nowMs()));
    } catch (cause) {
      const { op, stimulusId } = stimulus;
      this.stopBecause(`the stimulus ${stimulusId} (${op}) could not be handled`, cause);
    }
    if (this.arePortsStale) this.replacePorts();
    this.bus.release();
  }

  private deliver({ toWorkers, toClients, events }: Outbox): void {
    const { workers, clients } = this.sessions;
    for (const { worker, message } of toWorkers) {
      const session = workers.get(worker.address);
      session?.send({ ...message });
      if (message.op === 'close') session?.end();
    }
    for (const { client, message } of toClients) clients.get(client.key)?.send({ ...message });
    for (const { topic, message } of events) {
      this.eventLog.publish(topic, message, this.clock.nowMs());
      this.bus.emit('event', topic, message);
      for (const hook of this.ports.hooks.eventLogged) hook(topic, message);
    }
  }

  private hookFailed(observer: Observer, error: YardmasterError): void {
    this.report(error);
    if (observer.onError === 'disable') this.lifecycle.disable(observer.plugin);
    else if (observer.onError === 'crash') {
      this.stopBecause(`plugin "${observer.plugin}" failed and its onError is crash`, error);
    }
  }

  /** Something happened after which the state is not to be trusted: tell, and close. */
  private stopBecause(what: string, cause: unknown): void {
    if (this.isStopped) return;
    const message = cause instanceof Error ? cause.message : String(cause);
    const code = YardmasterError.is(cause, 'ERR_PLUGIN_HOOK') ? cause.code : 'ERR_INVARIANT';
    const error = new YardmasterError(
      code,
      `the scheduler closes: ${what}: ${message}`,
      {},
      { cause },
    );
    this.isStopped = true;
    this.queue.clear();
    this.crash = error;
    this.report(error);
    try {
      this.options.onCrash?.(error);
    } catch (thrown) {
      this.log.error({ err: thrown }, 'onCrash threw');
    }
    void this.close();
  }

  private startTimers(): void {
    const { workerTtl, noWorkersTimeout } = this.config.scheduler;
    const repeat = (
      intervalMs: number,
      op: 'check-worker-ttl' | 'check-no-workers-timeout',
    ): void => {
      this.timers.push(every(this.clock, intervalMs, () => this.enqueue({ op })));
    };
    if (workerTtl !== Infinity) repeat(workerTtl, 'check-worker-ttl');
    if (noWorkersTimeout !== Infinity) repeat(NO_WORKERS_CHECK_MS, 'check-no-workers-timeout');
  }

  private change<T>(run: () => Promise<T>): Promise<T> {
    const result = this.changes.then(() => {
      this.checkOpen();
      return run();
    });
    this.changes = result.catch(() => undefined); // Whoever asked for the change is told.
    return result;
  }

  private async shutDown(): Promise<void> {
    await this.changes;
    await this.lifecycle.beforeClose();
    this.isStopped = true;
    for (const timer of this.timers) timer.cancel();
    await this.lifecycle.closeAll();
    await Promise.all(this.listeners.map((listener) => this.attempt(() => listener.close())));
    for (const session of this.sessions.workers.values()) {
      session.send({ op: 'close', reason: 'scheduler-close', stimulusId: 'scheduler-close' });
    }
    const sessions = [...this.sessions.all];
    await Promise.all(sessions.map((session) => this.attempt(() => this.closeSession(session))));
    (this.gatherer as Gatherer | undefined)?.close();
    this.bus.emit('closed');
    await this.attempt(() => this.container.dispose());
  }

  private async closeSession({ channel }: Session): Promise<void> {
    try {
      await withTimeout(this.clock, channel.close(), CLOSE_TIMEOUT_MS, closedError);
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

  private checkOpen(): void {
    if (this.closing !== undefined || this.isStopped) throw closedError();
  }
}

function closedError(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler is closed');
}
