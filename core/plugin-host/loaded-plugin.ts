import { inBackground } from '../shared/background.ts';
import { every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { DecisionSink } from '../api/insight.ts';
import {
  type Caller,
  type LoadedExtension,
  type Logger,
  type NewStimulus,
  type PluginContext,
  type PluginInstance,
  type PolicyInCharge,
  token,
  type Token,
  type UseEntry,
} from '../api/plugin.ts';
import type { PolicySlots, SlotName } from '../api/policies.ts';
import type { Connection, ConnectionHandlers } from '../api/transport.ts';
import type { ClusterView } from '../api/views.ts';
import type { LanguageOf } from '../state/cluster.ts';
import type { Insight } from '../kernel/insight/insight.ts';
import { policyError } from '../kernel/placement/ask-policy.ts';
import { isPromise } from '../util/is-promise.ts';
import type { Clock } from '../api/clock.ts';
import { EVENT_BUS, type EventBus } from './event-bus.ts';
import { type HookRegistry, HOOKS, Observer, type PluginFailure } from './hook-table.ts';
import { inject } from './injection/di.ts';
import { loadExtension } from './loading/load-extension.ts';
import { namedLogger } from '../host/named-logger.ts';
import { PendingAnswers } from '../host/pending-answers.ts';
import type { Blueprint } from './loading/plugin-blueprint.ts';
import { type CommandDeclaration, type PluginCommand, readCommand } from './plugin-command.ts';
import { PluginEvents } from './plugin-events.ts';
import { PLUGIN_SERVICES, type PluginServices } from './plugin-services.ts';
import { type PluginResolver, RESOLVER } from './loading/plugin-resolver.ts';
import { type PolicySlotTable, SLOTS } from './policy-slots.ts';
import { CLOCK, LOGGER } from './injection/tokens.ts';

export const PLUGIN_HOST: Token<PluginHost> = token('plugin-host');
export const PLUGIN_SURROUNDINGS: Token<PluginSurroundings> = token('plugin-surroundings');

/** What a plugin can bring about; the host gives it. */
export interface PluginHost {
  readonly cluster: ClusterView;
  enqueue(stimulus: NewStimulus): void;
  /** A connection from within the process. @throws YardmasterError `ERR_CLOSED` */
  connectLocal(from: string, open: (connection: Connection) => ConnectionHandlers): Connection;
  /** Ends when everything is closed. */
  close(): Promise<void>;
  /** Runs a command. @throws YardmasterError */
  command(name: string, parameters: unknown, caller: Caller): unknown;
  /** Receives the decisions of plugins. */
  readonly insight: Pick<Insight, 'isRecording' | 'record'>;
  /**
   * Sets the function that returns the language of a task; undefined: none any more.
   * @param only - only if this is still the function
   */
  setLanguages(languageOf: LanguageOf | undefined, only?: LanguageOf): void;
  /** A slot was filled or emptied: compile the ports anew. */
  portsChanged(): void;
  /** Something failed that the scheduler survives. */
  report(error: YardmasterError): void;
  /** A plugin whose `onError` is `crash` failed. */
  stopBecause(what: string, cause: unknown): void;
  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void;
}

/** What every plugin of a scheduler is connected to. */
export class PluginSurroundings {
  constructor(
    @inject(PLUGIN_HOST) readonly host: PluginHost,
    @inject(CLOCK) readonly clock: Clock,
    @inject(LOGGER) readonly log: Logger,
    @inject(EVENT_BUS) readonly bus: EventBus,
    @inject(HOOKS) readonly hooks: HookRegistry,
    @inject(SLOTS) readonly slots: PolicySlotTable,
    @inject(RESOLVER) readonly resolver: PluginResolver,
    @inject(PLUGIN_SERVICES) readonly services: PluginServices,
  ) {}
}

/** One plugin of a scheduler with all that it has registered, so that all of it can be taken back. */
export class LoadedPlugin {
  readonly observer: Observer;
  readonly commands = new Map<string, PluginCommand>();
  /** Of its commands. */
  readonly answers = new PendingAnswers();
  /** Policies that it offers; they fill their slots once the plugin is attached. */
  readonly policies = new Map<SlotName, PolicySlots[SlotName]>();
  readonly log: Logger;
  /** Milliseconds that each phase of its life took. */
  readonly phasesMs = new Map<string, number>();
  isAttached = false;
  private languageOf: LanguageOf | undefined;

  private readonly events: PluginEvents;
  private readonly abort = new AbortController();
  private readonly timers = new Set<Timer>();
  private readonly connections = new Set<Connection>();
  private readonly provided: (() => void)[] = [];

  constructor(
    readonly blueprint: Blueprint,
    private readonly around: PluginSurroundings,
  ) {
    this.observer = new Observer(blueprint.name, blueprint.onError);
    this.log = namedLogger(around.log, blueprint.name);
    this.events = new PluginEvents(around.bus, (hook, cause) => {
      const name = hook.slice('event:'.length);
      this.failed({ hook, subject: `a listener of ${this.owner} for the event "${name}"`, cause });
    });
  }

  /** What `setup` returned: its hooks, and what to do at the other moments of its life. */
  get instance(): PluginInstance {
    return this.observer.instance;
  }

  get name(): string {
    return this.blueprint.name;
  }

  /** As messages have it: `plugin "counter"`. */
  get owner(): string {
    return `plugin "${this.name}"`;
  }

  /** Gives services to others; called once the plugin is set up. */
  attach(): void {
    this.isAttached = true;
    for (const provide of this.provided) provide();
  }

  /** Ends timers, aborts the signal, and takes back services and commands. */
  stop(): void {
    this.isAttached = false;
    this.observer.isDetached = true;
    this.around.services.withdraw(this);
    for (const timer of this.timers) timer.cancel();
    this.timers.clear();
    this.events.dispose();
    if (this.languageOf !== undefined) this.around.host.setLanguages(undefined, this.languageOf);
    this.commands.clear();
    const reason = new YardmasterError('ERR_CLOSED', `${this.owner} was removed`, {
      plugin: this.name,
    });
    this.abort.abort(reason);
    for (const connection of this.connections) connection.abort(reason);
    this.connections.clear();
  }

  /** It has ended: calls of its commands that it has not answered fail. */
  failAnswers(): void {
    if (this.answers.size === 0) return;
    this.answers.failAll(
      new YardmasterError(
        'ERR_CLOSED',
        `${this.owner} was removed, or its scheduler closed, before it answered the command`,
        { plugin: this.name },
      ),
    );
  }

  /** What its `setup` receives. */
  context(): PluginContext {
    const { name } = this;
    const { host, clock } = this.around;
    return {
      name,
      get cluster() {
        return host.cluster;
      },
      clock,
      log: this.log,
      events: this.events,
      signal: this.abort.signal,
      enqueue: (stimulus) => this.enqueue(stimulus),
      every: (intervalMs, callback) => {
        return this.every(intervalMs, callback);
      },
      connect: (open) => this.connect(open),
      run: (command, parameters, caller = {}) => host.command(command, parameters, caller),
      command: (command: string, ...declared: CommandDeclaration) => {
        this.commands.set(command, readCommand(this, this.commands, command, declared));
      },
      providePolicy: (slot, policy) => this.providePolicy(slot, policy),
      policyIn: (slot) => this.policyIn(slot),
      tellLanguages: (languageOf) => {
        this.languageOf = languageOf;
        host.setLanguages(languageOf);
      },
      provide: (token, service) => this.provide(token, service),
      get: (wanted) => this.get(wanted),
      load: (entry, at) => this.load(entry, at),
      decisions: this.decisionSink(),
      shutDown: () => {
        inBackground(host.close(), (error) => {
          this.log.error({ err: error }, 'the scheduler could not close in good order');
        });
      },
      report: (error) => this.report(error),
    };
  }

  /** A stimulus of the wrong form is a failure of the plugin, and goes no further. */
  private enqueue(stimulus: NewStimulus): void {
    try {
      this.around.host.enqueue(stimulus);
    } catch (cause) {
      if (!YardmasterError.is(cause, 'ERR_PROTOCOL')) throw cause;
      this.failed({ hook: 'enqueue', subject: `enqueue(), as ${this.owner} called it,`, cause });
    }
  }

  private every(intervalMs: number, callback: () => unknown): Timer {
    if (this.abort.signal.aborted) return { cancel: () => undefined };
    const timer = every(this.around.clock, intervalMs, () => {
      try {
        const result = callback();
        if (isPromise(result))
          result.then(undefined, (thrown: unknown) => this.timerFailed(thrown));
      } catch (thrown) {
        this.timerFailed(thrown);
      }
    });
    this.timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.timers.delete(timer);
      },
    };
  }

  private connect(open: (connection: Connection) => ConnectionHandlers): Connection {
    const opened = this.around.host.connectLocal(`plugin:${this.name}`, (connection) => {
      const handlers = open(connection);
      return {
        onMessages: (batch) => handlers.onMessages(batch),
        onClose: (error) => {
          this.connections.delete(opened);
          handlers.onClose(error);
        },
      };
    });
    this.connections.add(opened);
    return opened;
  }

  private decisionSink(): DecisionSink {
    const { name } = this;
    const { host, clock } = this.around;
    return {
      get isRecording() {
        return host.insight.isRecording;
      },
      record: (decision) => {
        host.insight.record({ policy: name, ...decision, stimulusId: name, atMs: clock.nowMs() });
      },
    };
  }

  private timerFailed(cause: unknown): void {
    this.failed({ hook: 'every', subject: `a timer of ${this.owner}`, cause });
  }

  /** What throws after the plugin is gone is counted, and ends nothing. */
  private failed(failure: PluginFailure): void {
    this.around.hooks.failed(this.observer, failure);
  }

  private report(error: YardmasterError): void {
    this.observer.errorCount++;
    this.around.host.report(error);
  }

  private providePolicy<Slot extends SlotName>(slot: Slot, policy: PolicySlots[Slot]): void {
    if (this.isAttached) {
      this.around.slots.provide(slot, { name: this.name, policy }, this.owner);
      this.around.host.portsChanged();
    }
    this.policies.set(slot, policy);
  }

  private policyIn<Slot extends SlotName>(slot: Slot): PolicyInCharge<Slot> {
    const { slots, host } = this.around;
    const { name, policy } = slots.inCharge(slot);
    const failed = (what: string, cause?: unknown): void => {
      host.report(policyError(slot, name, what, cause));
    };
    return { name, policy, failed };
  }

  private provide<T>(service: Token<T>, value: T): void {
    const provide = (): void => this.around.services.provide(service, value, this);
    this.provided.push(provide);
    if (this.isAttached) provide();
  }

  private get<T>(service: Token<T>): T {
    if (service.id === CLOCK.id) return this.around.clock as T;
    if (service.id === LOGGER.id) return this.log as T;
    return this.around.services.get(service);
  }

  private load(entry: UseEntry, at: readonly (string | number)[] = []): Promise<LoadedExtension> {
    const { place } = this.blueprint;
    const inner = { ...place, optionsAt: [...place.optionsAt, ...at, 'options'] };
    return loadExtension(this.around.resolver, entry, inner);
  }
}
