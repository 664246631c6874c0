import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { EventName, EventSource, HookTable, SchedulerEvents } from '../api/hooks.ts';
import type { DecisionSink } from '../api/insight.ts';
import {
  type LoadedExtension,
  type NewStimulus,
  type PluginContext,
  type PolicyInCharge,
  type Token,
  type UseEntry,
} from '../api/plugin.ts';
import type { PolicySlots, SlotName } from '../api/policies.ts';
import type { Connection, ConnectionHandlers } from '../api/transport.ts';
import { policyError } from '../kernel/ask-policy.ts';
import { Insight } from '../kernel/insight.ts';
import { complaintAboutListener } from '../plugin-host/contracts.ts';
import { EventBus, type ListenerFailure } from '../plugin-host/event-bus.ts';
import { AT_RUN_TIME } from '../plugin-host/extension-options.ts';
import { HookRegistry, Observer } from '../plugin-host/hook-table.ts';
import { collaborator, CLOCK, inject, isToken, LOGGER } from '../plugin-host/injection.ts';
import { loadExtension } from '../plugin-host/load-extension.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { original, readOnly } from '../shared/read-only.ts';
import type { LanguageOf } from '../state/cluster.ts';
import { ClusterState } from '../state/cluster.ts';
import { Commands, type DeclaredCommand, readCommand } from './commands.ts';
import { ErrorReports } from './error-reports.ts';
import { PortsReplacement } from './kernel-ports.ts';
import { Listeners } from './listeners.ts';
import { checkStimulus } from './message-checks.ts';
import { type LoadedPlugin, PluginServices } from './plugin-table.ts';
import { Shutdown } from './shutdown.ts';
import { type Stimuli, STIMULI } from './stimulus-queue.ts';

/** Connects plugins with the collaborators of their scheduler: what `setup` of each receives. */
@collaborator
export class PluginContexts {
  constructor(
    private readonly cluster: ClusterState,
    private readonly insight: Insight,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly listeners: Listeners,
    private readonly commands: Commands,
    private readonly slots: PolicySlotTable,
    private readonly ports: PortsReplacement,
    private readonly services: PluginServices,
    private readonly resolver: PluginResolver,
    private readonly bus: EventBus,
    private readonly errors: ErrorReports,
    private readonly shutdown: Shutdown,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly hooks: HookRegistry,
  ) {}

  /** Called once for each plugin. */
  contextOf(plugin: LoadedPlugin): PluginContext {
    return {
      ...plugin.baseContext(),
      cluster: plugin.blueprint.isTrusted ? this.cluster : readOnly(this.cluster),
      events: this.eventsOf(plugin),
      enqueue: (stimulus) => this.enqueue(plugin, stimulus),
      observe: (hooks) => this.observe(plugin, hooks),
      connect: (open) => this.connect(plugin, open),
      run: (command, parameters, caller = {}) => this.commands.run(command, parameters, caller),
      command: (command: string, ...declared: DeclaredCommand) => {
        plugin.commands.set(command, readCommand(plugin, plugin.commands, command, declared));
      },
      providePolicy: (slot, policy) => {
        plugin.providePolicy(slot, policy);
        if (plugin.isAttached) this.ports.request();
      },
      policyIn: (slot) => this.policyIn(slot),
      tellLanguages: (languageOf) => this.setLanguages(plugin, languageOf),
      provide: (service, value) => {
        checkToken(plugin, 'provide', service);
        plugin.provide(service, value);
      },
      get: (service) => this.get(plugin, service),
      load: (entry, at) => this.load(plugin, entry, at),
      decisions: this.decisionSink(plugin),
      shutDown: () => this.shutdown.closeInBackground(),
    };
  }

  private eventsOf(plugin: LoadedPlugin): PluginEvents {
    const subjectOf = (name: string): string =>
      `a listener of ${plugin.owner} for the event "${name}"`;
    const events = new PluginEvents(this.bus, {
      owner: plugin.owner,
      isTrusted: plugin.blueprint.isTrusted,
      run: (name, call) => this.hooks.run(subjectOf(name), call, true),
      onFailure: (hook, cause) => {
        plugin.failed({ hook, subject: subjectOf(hook.slice('event:'.length)), cause });
      },
    });
    plugin.onStop(() => events.dispose());
    return events;
  }

  /** A stimulus of the wrong form is a failure of the plugin, and goes no further. */
  private enqueue(plugin: LoadedPlugin, stimulus: NewStimulus): void {
    try {
      checkStimulus(stimulus);
      this.stimuli.accept(plugin.blueprint.isTrusted ? stimulus : withoutViews(stimulus));
    } catch (cause) {
      if (!YardmasterError.is(cause, 'ERR_PROTOCOL')) throw cause;
      const subject = `enqueue(), as ${plugin.owner} called it,`;
      plugin.failed({ hook: 'enqueue', subject, cause });
    }
  }

  /** The hooks are counted with those that `setup` returned. */
  private observe(plugin: LoadedPlugin, hooks: HookTable): () => void {
    const { onError, counters, isDetached, isTrusted } = plugin.observer;
    if (isDetached) return () => undefined;
    const observer = new Observer(plugin.name, onError, hooks, counters, isTrusted);
    this.hooks.add(observer);
    this.ports.request();
    const stop = (): void => {
      if (observer.isDetached) return;
      this.hooks.remove(observer);
      this.ports.request();
    };
    plugin.onStop(stop);
    return stop;
  }

  private connect(
    { name, connections }: LoadedPlugin,
    open: (connection: Connection) => ConnectionHandlers,
  ): Connection {
    const opened = this.listeners.connectLocal(`plugin:${name}`, (connection) => {
      const handlers = open(connection);
      return {
        onMessages: (batch) => handlers.onMessages(batch),
        onClose: (error) => {
          connections.delete(opened);
          handlers.onClose(error);
        },
      };
    });
    connections.add(opened);
    return opened;
  }

  private policyIn<Slot extends SlotName>(slot: Slot): PolicyInCharge<Slot> {
    const { name, policy }: { name: string; policy: PolicySlots[Slot] } = this.slots.inCharge(slot);
    const failed = (what: string, cause?: unknown, question = ''): void => {
      const error = policyError(slot, name, what, cause);
      this.errors.policyFailed({
        question: `${slot} ${question}`,
        slot,
        policy: name,
        what,
        error,
      });
    };
    const answered = (question: string): void =>
      this.errors.policyAnswered?.(`${slot} ${question}`);
    return { name, policy, failed, answered };
  }

  /** The latest function is used, for as long as its plugin is there. */
  private setLanguages(plugin: LoadedPlugin, languageOf: LanguageOf): void {
    const { cluster } = this;
    cluster.languageOf = languageOf;
    plugin.onStop(() => {
      if (cluster.languageOf === languageOf) cluster.languageOf = undefined;
    });
  }

  private get<T>(plugin: LoadedPlugin, service: Token<T>): T {
    checkToken(plugin, 'get', service);
    if (service.id === CLOCK.id) return this.clock as T;
    if (service.id === LOGGER.id) return plugin.log as T;
    return this.services.get(service);
  }

  private load(
    { blueprint: { place } }: LoadedPlugin,
    entry: UseEntry,
    at?: readonly (string | number)[],
  ): Promise<LoadedExtension> {
    const inner =
      at === undefined
        ? AT_RUN_TIME
        : { ...place, optionsAt: [...place.optionsAt, ...at, 'options'] };
    return loadExtension(this.resolver, entry, inner);
  }

  private decisionSink({ name }: LoadedPlugin): DecisionSink {
    const { insight, clock } = this;
    return {
      get isRecording() {
        return insight.isRecording;
      },
      record: (decision) => {
        insight.record({ policy: name, ...decision, stimulusId: name, atMs: clock.nowMs() });
      },
    };
  }
}

/** A stimulus that is kept, sent and recorded has no views in it. */
function withoutViews(stimulus: NewStimulus): NewStimulus {
  const parts = Object.entries(stimulus).map(([name, value]) => [name, original<unknown>(value)]);
  return Object.fromEntries(parts) as NewStimulus;
}

function checkToken(plugin: LoadedPlugin, method: string, service: unknown): void {
  if (isToken(service)) return;
  throw plugin.misused(method, 'a token', service, '; is its import right?');
}

interface Entry {
  readonly name: EventName;
  readonly listener: SchedulerEvents[EventName];
  stop(): void;
}

interface PluginEventsParts {
  /** The plugin, as messages call it. */
  readonly owner: string;
  /** Whether its listeners get the state itself: it is built in. */
  readonly isTrusted: boolean;
  /** Calls a listener of an event, and measures it. */
  run(name: EventName, call: () => unknown): unknown;
  /** A listener threw, or returned a promise that was rejected. */
  readonly onFailure: ListenerFailure;
}

/** The event bus as one plugin sees it: failures of its listeners are its own, and its listeners end with it. */
class PluginEvents implements EventSource {
  private readonly entries: Entry[] = [];
  private isDisposed = false;

  constructor(
    private readonly bus: EventBus,
    private readonly parts: PluginEventsParts,
  ) {}

  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, false);
  }

  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, listener, true);
  }

  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.check(name, listener);
    const entry = this.entries.findLast((one) => one.name === name && one.listener === listener);
    if (entry === undefined) return;
    this.forget(entry);
    entry.stop();
  }

  /** Takes all of its listeners away. Later ones are ignored. */
  dispose(): void {
    this.isDisposed = true;
    for (const entry of this.entries.splice(0)) entry.stop();
  }

  private add<Name extends EventName>(
    name: Name,
    listener: SchedulerEvents[Name],
    isOnce: boolean,
  ): void {
    this.check(name, listener);
    if (this.isDisposed) return;
    const entry: Entry = { name, listener, stop: () => stop() };
    const call = listener as (...args: unknown[]) => unknown;
    const measured = (...args: unknown[]): unknown => this.parts.run(name, () => call(...args));
    const stop = this.bus.listen(name, measured, {
      onFailure: this.parts.onFailure,
      isOnce,
      isTrusted: this.parts.isTrusted,
      onCalled: () => {
        if (isOnce) this.forget(entry);
      },
    });
    this.entries.push(entry);
  }

  private check(name: unknown, listener: unknown): void {
    const complaint = complaintAboutListener(name, listener);
    if (complaint === undefined) return;
    throw new YardmasterError('ERR_PLUGIN_SETUP', `events of ${this.parts.owner}: ${complaint}`, {
      event: name,
    });
  }

  private forget(entry: Entry): void {
    const index = this.entries.indexOf(entry);
    if (index >= 0) this.entries.splice(index, 1);
  }
}
