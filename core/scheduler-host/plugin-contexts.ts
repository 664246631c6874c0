import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { HookTable } from '../api/hooks.ts';
import type { DecisionSink } from '../api/insight.ts';
import {
  BRIDGE,
  type Bridge,
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
import { AT_RUN_TIME } from '../plugin-host/extension-options.ts';
import { HookRegistry } from '../plugin-host/hooks.ts';
import { collaborator, inject, isToken } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import { loadExtension } from '../plugin-host/load-extensions.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { checkSlot, PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { original, readOnly } from '../shared/read-only.ts';
import { ClusterState, type LanguageOf } from '../state/cluster.ts';
import { Commands, type DeclaredCommand, readCommand } from './commands.ts';
import { ErrorReports } from './error-reports.ts';
import { PortsReplacement } from './kernel-ports.ts';
import { type LoadedPlugin, PluginServices } from './plugin-table.ts';
import { Shutdown } from './shutdown.ts';
import { INGRESS, type Ingress, type Stimuli, STIMULI } from './tokens.ts';

/** Connects plugins with the collaborators of their scheduler: what `setup` of each receives. */
@collaborator
export class PluginContexts {
  constructor(
    private readonly cluster: ClusterState,
    private readonly insight: Insight,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    @inject(INGRESS) private readonly ingress: Ingress,
    private readonly commands: Commands,
    private readonly slots: PolicySlotTable,
    private readonly ports: PortsReplacement,
    private readonly services: PluginServices,
    private readonly resolver: PluginResolver,
    private readonly errors: ErrorReports,
    private readonly shutdown: Shutdown,
    @inject(CLOCK) private readonly clock: Clock,
    private readonly hooks: HookRegistry,
  ) {}

  /** Called once for each plugin. */
  contextOf(plugin: LoadedPlugin): PluginContext {
    const base = plugin.baseContext();
    const bridge = plugin.guarded(this.bridgeOf(plugin));
    const context: PluginContext = {
      clock: base.clock,
      log: base.log,
      signal: base.signal,
      every: (intervalMs, callback) => base.every(intervalMs, callback),
      report: (error) => base.report(error),
      cluster: plugin.blueprint.isTrusted ? this.cluster : readOnly(this.cluster),
      enqueue: (stimulus) => this.enqueue(plugin, stimulus),
      run: (command, parameters, caller = {}) => this.commands.run(command, parameters, caller),
      command: (command: string, ...declared: DeclaredCommand) => {
        plugin.commands.set(command, readCommand(plugin, plugin.commands, command, declared));
      },
      providePolicy: (role, policy) => {
        plugin.providePolicy(role, policy);
        if (plugin.isAttached) this.ports.request();
      },
      provide: (service, value) => {
        checkToken(plugin, 'provide', service);
        plugin.provide(service, value);
      },
      get: (service) => this.get(plugin, bridge, base.clock, service),
    };
    return plugin.guarded(context, Object.keys(bridge));
  }

  private bridgeOf(plugin: LoadedPlugin): Bridge {
    return {
      connect: (open) => this.connect(plugin, open),
      tellLanguages: (languageOf) => this.setLanguages(plugin, languageOf),
      observe: (hooks) => this.observe(plugin, hooks),
      policyIn: (slot) => this.policyIn(slot),
      judge: (policy, failure) => {
        if (failure !== undefined) plugin.report(failure);
        this.errors.policyJudged?.(`${plugin.name} ${policy}`, failure);
      },
      timed: (subject, call) => this.hooks.run(subject, call),
      slowCalls: () => this.hooks.slowCalls(),
      load: (entry, at) => this.load(plugin, entry, at),
      decisions: this.decisionSink(plugin),
      shutDown: () => this.shutdown.closeInBackground(),
    };
  }

  /** A stimulus of the wrong form is a failure of the plugin, and goes no further. */
  private enqueue(plugin: LoadedPlugin, stimulus: NewStimulus): void {
    try {
      this.ingress.check(stimulus);
      this.stimuli.accept(plugin.blueprint.isTrusted ? stimulus : withoutViews(stimulus));
    } catch (cause) {
      if (!YardmasterError.is(cause, 'ERR_PROTOCOL')) throw cause;
      const subject = `enqueue(), as ${plugin.owner} called it,`;
      plugin.failed({ hook: 'enqueue', subject, cause });
    }
  }

  /** The hooks are counted with those that `setup` returned. */
  private observe(plugin: LoadedPlugin, hooks: HookTable): () => void {
    if (plugin.observer.isDetached) return () => undefined;
    const observer = plugin.observer.extended(hooks);
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
    const opened = this.ingress.connectLocal(`plugin:${name}`, (connection) => {
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
    checkSlot(slot);
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
    const answered = (question: string): void => this.errors.policyJudged?.(`${slot} ${question}`);
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

  private get<T>(plugin: LoadedPlugin, bridge: Bridge, clock: Clock, service: Token<T>): T {
    checkToken(plugin, 'get', service);
    if (service.id === BRIDGE.id) return bridge as T;
    if (service.id === CLOCK.id) return clock as T;
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
  throw plugin.misused(`${method}()`, 'a token', service, '; is its import right?');
}
