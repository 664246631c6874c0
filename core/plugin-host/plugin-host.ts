import { type Clock, elapsedMs, every, type Timer } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import type { HookName } from '../api/hooks.ts';
import type {
  LocalPluginContext,
  NannyPlugin,
  NannyPluginDefinition,
  WorkerPlugin,
  WorkerPluginDefinition,
} from '../api/local-plugins.ts';
import type { Logger, PluginContext, PluginInstance, UseEntry } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { WireMessage } from '../api/transport.ts';
import { IN_CODE } from '../config/problems.ts';
import type { OnError } from '../config/types.ts';
import { inBackground, withTimeout } from '../shared/timers.ts';
import { namedLogger, nextToReport } from '../host/log.ts';
import type { HookCalls } from '../kernel/ports.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import type { ModuleLimit } from '../shared/limits.ts';
import { hint, show } from '../shared/words.ts';
import { InTurn } from '../util/steps.ts';
import { isEqual, isPlainObject, isPromise } from '../util/values.ts';
import type { PluginKind } from './contracts.ts';
import { AT_RUN_TIME, UniqueNames } from './extension-options.ts';
import {
  type FailureReport,
  type HookCounters,
  HookRegistry,
  Observer,
  type PluginFailure,
} from './hooks.ts';
import { refuseProviders } from './injection.ts';
import { type Blueprint, blueprintOf, checkRequired } from './load-extensions.ts';
import type { PluginResolver } from './plugin-resolver.ts';

/** Time that a plugin has for each phase of its life. */
const PHASE_TIMEOUT_MS = 10_000;

/** Calls the phases of all plugins. Virtual clocks replace it: their time stands still while a phase does real work. */
export const phases = { call: <T>(phase: () => T): T => phase() };

type Phase = 'setup' | 'start' | 'beforeClose' | 'close';

/** The services of a scheduler, worker or nanny for the host of its plugins. */
interface PluginOwner<Plugin extends HostedPlugin> {
  readonly clock: Clock;
  readonly hooks: Pick<HookRegistry, 'add' | 'remove' | 'onFailure'>;
  /** The plugins that are set up, in order. The host alone changes it. */
  readonly plugins: Map<string, Plugin>;
  make(blueprint: Blueprint): Plugin;
  /** The context that `setup` of the plugin receives. */
  contextOf(plugin: Plugin): object;
  /** Hooks and policies have come or gone. */
  changed(): void;
  /** Reports an error that the owner survives. */
  report(error: YardmasterError): void;
  /** A plugin whose `onError` is `crash` failed. */
  crashed(plugin: string, error: YardmasterError): void;
  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void;
}

/**
 * The life of the plugins of a scheduler, a worker or a nanny: setup → attach → start → … → beforeClose
 * → close, the last two in reverse. A plugin that fails to set up or start leaves nothing behind, and
 * what a plugin throws affects no other plugin.
 */
export class PluginHost<Plugin extends HostedPlugin> {
  private readonly plugins: Map<string, Plugin>;
  private readonly changes = new InTurn();

  constructor(private readonly owner: PluginOwner<Plugin>) {
    this.plugins = owner.plugins;
    owner.hooks.onFailure = (observer, failure) => this.failed(observer, failure);
  }

  /**
   * Runs a change of the plugins after all earlier ones.
   * @throws YardmasterError `ERR_CLOSED`, and what the change throws
   */
  change<T>(run: () => Promise<T>): Promise<T> {
    return this.changes.run(() => {
      this.owner.checkOpen();
      return run();
    });
  }

  /** True while plugins come or go. */
  get isChanging(): boolean {
    return this.changes.isBusy;
  }

  /** Resolves when the changes that were begun are complete. */
  settled(): Promise<void> {
    return this.changes.settled();
  }

  /**
   * Sets a plugin up and attaches it. One of the same name is replaced once the new one is ready, and
   * then closed.
   * @throws YardmasterError `ERR_PLUGIN_SETUP`, `ERR_SLOT`
   */
  async add(blueprint: Blueprint): Promise<Plugin> {
    checkRequired(blueprint, [...this.plugins.keys()]);
    const plugin = this.owner.make(blueprint);
    let settingUp: unknown;
    try {
      plugin.observer.instance = await this.runPhase(plugin, 'setup', () => {
        // The kind of the blueprint was checked: it wants this context.
        const begun = blueprint.setup(this.owner.contextOf(plugin) as PluginContext);
        settingUp = begun;
        return begun;
      });
      settingUp = undefined;
      const replaced = this.plugins.get(plugin.name);
      this.attach(plugin, replaced);
      if (replaced !== undefined) await this.end(replaced);
    } catch (error) {
      plugin.stop();
      await this.end(plugin);
      if (isPromise(settingUp)) this.closeLate(plugin, settingUp);
      throw error;
    }
    return plugin;
  }

  /** Adds and starts a plugin beside others at work. Errors as for {@link add} and {@link start}. */
  async addStarted(blueprint: Blueprint): Promise<void> {
    const former = this.plugins.get(blueprint.name)?.blueprint;
    await this.start(await this.add(blueprint), former);
  }

  /**
   * @param former - was replaced by the plugin, and is set up and started again when that fails
   * @throws YardmasterError `ERR_PLUGIN_SETUP`; the plugin is then gone
   */
  async start(plugin: Plugin, former?: Blueprint): Promise<void> {
    try {
      const { startTimeoutMs } = plugin.instance;
      if (startTimeoutMs !== undefined && !(startTimeoutMs > 0)) {
        throw plugin.misused('startTimeoutMs', 'a number of milliseconds above 0', startTimeoutMs);
      }
      await this.runPhase(plugin, 'start', () => plugin.instance.start?.(), startTimeoutMs);
    } catch (error) {
      const restored = former && this.add(former).then((again) => this.start(again));
      await restored?.catch((second: unknown) => this.owner.report(second as YardmasterError));
      if (this.plugins.get(plugin.name) === plugin) await this.remove(plugin);
      throw error;
    }
  }

  async remove(plugin: Plugin): Promise<void> {
    this.plugins.delete(plugin.name);
    this.detach(plugin);
    await this.end(plugin);
  }

  /** First step when the owner closes. Errors are reported. */
  async beforeClose(): Promise<void> {
    for (const plugin of [...this.plugins.values()].reverse()) {
      await this.tryPhase(plugin, 'beforeClose', () => plugin.instance.beforeClose?.());
    }
  }

  /** Closes all, the newest first. Errors are reported. */
  async closeAll(): Promise<void> {
    for (const plugin of [...this.plugins.values()].reverse()) await this.remove(plugin);
  }

  private attach(plugin: Plugin, replaced: Plugin | undefined): void {
    const wasAttached = replaced?.isAttached === true;
    replaced?.withdraw();
    try {
      plugin.attach();
      this.owner.hooks.add(plugin.observer, replaced?.observer);
    } catch (error) {
      plugin.withdraw();
      plugin.stop();
      if (wasAttached) replaced.attach();
      throw error;
    } finally {
      this.owner.changed();
    }
    replaced?.leave();
    this.plugins.set(plugin.name, plugin);
  }

  private detach(plugin: Plugin): void {
    plugin.leave();
    plugin.withdraw();
    this.owner.hooks.remove(plugin.observer);
    this.owner.changed();
  }

  private async end(plugin: Plugin): Promise<void> {
    await this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
    plugin.stop();
    plugin.isClosed = true;
    plugin.ended();
  }

  /** Closes what a setup makes that ends after its time. */
  private closeLate(plugin: Plugin, settingUp: PromiseLike<unknown>): void {
    const closed = Promise.resolve(settingUp).then(
      (instance) => {
        plugin.observer.instance = instance as PluginInstance;
        return this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
      },
      () => undefined, // It has nothing to close.
    );
    inBackground(closed, `${plugin.owner} could not be closed`);
  }

  /** Takes hooks and policies of a plugin away; it stays in the list until it is removed. */
  private disable(plugin: Plugin): void {
    this.detach(plugin);
    plugin.stop();
    // After a turn: what it has to say itself comes first.
    this.owner.clock.setTimer(0, () => plugin.ended());
  }

  private failed(observer: Observer, { error, isReported }: FailureReport): void {
    if (isReported) this.owner.report(error);
    const plugin = this.plugins.get(observer.plugin);
    if (plugin?.observer !== observer) return; // It is gone.
    if (observer.onError === 'crash') this.owner.crashed(observer.plugin, error);
    else if (observer.onError === 'disable') this.disable(plugin);
  }

  private async tryPhase(plugin: Plugin, phase: Phase, run: () => unknown): Promise<void> {
    try {
      await this.runPhase(plugin, phase, run);
    } catch (error) {
      this.owner.report(error as YardmasterError);
    }
  }

  private async runPhase<T>(
    plugin: Plugin,
    phase: Phase,
    run: () => T,
    timeoutMs = PHASE_TIMEOUT_MS,
  ): Promise<Awaited<T>> {
    const { name, blueprint } = plugin;
    const { clock } = this.owner;
    const startMs = clock.nowMs();
    const seconds = timeoutMs / 1000;
    const shown = `plugin "${name}" (${blueprint.source})`;
    try {
      const running = phases.call(() => Promise.resolve().then(run)) as Promise<Awaited<T>>;
      if (timeoutMs === Infinity) return await running;
      return await withTimeout(clock, running, timeoutMs, () => {
        return new YardmasterError(
          'ERR_PLUGIN_SETUP',
          `${shown} did not finish ${phase} within ${seconds} s; it probably awaits a promise that never settles`,
          { plugin: name, phase, timeoutMs },
        );
      });
    } catch (cause) {
      if (YardmasterError.is(cause) && cause.data['phase'] === phase) throw cause;
      if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause; // It says all that is needed.
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `${shown} failed in ${phase}: ${messageOf(cause)}`,
        { plugin: name, phase },
        { cause },
      );
    } finally {
      plugin.phasesMs.set(phase, clock.nowMs() - startMs);
    }
  }
}

/** The surroundings of every plugin, whether of a scheduler, a worker or a nanny. */
export interface PluginSurroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hooks: Pick<HookRegistry, 'failed' | 'run' | 'timed'>;
  /** Reports an error that the owner of the plugin survives. */
  report(error: YardmasterError): void;
}

/** One plugin with all that it has started, so that all of it can be ended. */
export class HostedPlugin {
  readonly observer: Observer;
  readonly log: Logger;
  /** Milliseconds that each phase of its life took. */
  readonly phasesMs = new Map<string, number>();
  isAttached = false;
  /** True once its `close` is over. */
  isClosed = false;
  private readonly abort = new AbortController();
  private readonly endings = new Set<() => void>();

  constructor(
    readonly blueprint: Blueprint,
    private readonly around: PluginSurroundings,
  ) {
    const { name, onError, isTrusted } = blueprint;
    this.observer = new Observer(name, onError, {}, new Map(), isTrusted);
    this.log = namedLogger(around.log, { plugin: blueprint.name });
  }

  /** The instance that `setup` returned. */
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

  /** The part of the context that every `setup` receives. */
  baseContext(): LocalPluginContext {
    const { clock } = this.around;
    const setTimer: Clock['setTimer'] = (delayMs, callback) => {
      if (!(delayMs >= 0)) throw this.misused('clock.setTimer()', 'milliseconds', delayMs);
      const timed = this.isolated(callback);
      // It may wait in its close after it was disabled.
      if (this.abort.signal.aborted) return clock.setTimer(delayMs, timed);
      const timer = clock.setTimer(delayMs, () => {
        this.endings.delete(end);
        timed();
      });
      const end = (): void => timer.cancel();
      return this.ending(end);
    };
    return {
      name: this.name,
      // A clock of its own: what the callbacks of its timers throw is a failure of the plugin.
      clock: this.blueprint.isTrusted
        ? clock
        : { nowMs: () => clock.nowMs(), elapsedMs: () => elapsedMs(clock), setTimer },
      log: this.log,
      signal: this.abort.signal,
      every: (intervalMs, callback) => this.every(intervalMs, callback),
      report: (error) => this.report(error),
    };
  }

  /** Called once the plugin is set up. */
  attach(): void {
    this.isAttached = true;
  }

  /** Takes back what {@link attach} gave. */
  withdraw(): void {
    this.isAttached = false;
  }

  /** Called before `close` of the plugin: its hooks are not called any more. */
  leave(): void {
    this.isAttached = false;
    this.observer.isDetached = true;
  }

  /** Ends timers and everything else that was started, and aborts the signal. */
  stop(): void {
    this.isAttached = false;
    this.observer.isDetached = true;
    for (const end of this.endings) end();
    this.endings.clear();
    this.abort.abort(this.closedError());
  }

  /** Called after `close` of the plugin. */
  ended(): void {
    /* Nothing is left. */
  }

  /** Has {@link stop} call this. */
  onStop(end: () => void): void {
    this.endings.add(end);
  }

  /** Counts a failure. One after the plugin is gone ends nothing. */
  failed(failure: PluginFailure): void {
    this.around.hooks.failed(this.observer, failure);
  }

  /** Runs something of it that is no hook; it is named when it takes long. */
  run<T>(subject: string, call: () => T): T {
    return this.around.hooks.run(subject, call);
  }

  /** For a method of its context that was called with what it cannot take. */
  misused(method: string, wanted: string, got: unknown, advice = ''): YardmasterError {
    return new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `${method} of ${this.owner} takes ${wanted}, got ${show(got)}${advice}`,
      { plugin: this.name, method },
    );
  }

  protected closedError(what = 'was removed'): YardmasterError {
    return new YardmasterError('ERR_CLOSED', `${this.owner} ${what}`, { plugin: this.name });
  }

  /** Counts an error, and reports it the 1st, 2nd, 4th, 8th … time. */
  report(error: YardmasterError): void {
    const { observer, owner } = this;
    if (!YardmasterError.is(error)) {
      this.failed({ hook: 'reporting', subject: `what ${owner} reported`, cause: error });
      return;
    }
    observer.errorCount++;
    const kind = `report:${error.message}`;
    const next = nextToReport(observer.failures, error, { kind, of: 'kind' });
    if (next !== undefined) this.around.report(next);
  }

  /**
   * The context that `setup` receives. A misspelt member of it is named, and so is a call when the plugin is closed.
   * @param elsewhere - members of the bridge
   */
  guarded<Context extends object>(context: Context, elsewhere: readonly string[] = []): Context {
    if (this.blueprint.isTrusted) return context;
    const known = Object.keys(context);
    const guard = (name: string, call: (...given: unknown[]) => unknown) => {
      return (...given: unknown[]): unknown => {
        const late = `was closed when ${name}() was called; end what it has started when context.signal is aborted`;
        if (this.isClosed) this.report(this.closedError(late));
        return call(...given);
      };
    };
    const members = Object.entries(context).map(([name, member]: [string, unknown]) => {
      return [name, typeof member === 'function' ? guard(name, member as never) : member];
    });
    const get = (target: object, name: PropertyKey): unknown => {
      if (typeof name !== 'string' || name in target) return Reflect.get(target, name);
      const advice = elsewhere.includes(name) ? '; context.get(BRIDGE) has it' : hint(name, known);
      if (advice === '') return undefined;
      const message = `the context of ${this.owner} has no "${name}"${advice}; there are ${known.join(', ')}`;
      throw new YardmasterError('ERR_PLUGIN_SETUP', message, { plugin: this.name, member: name });
    };
    return Object.setPrototypeOf(Object.fromEntries(members), new Proxy({}, { get })) as Context;
  }

  private every(intervalMs: number, callback: () => unknown): Timer {
    if (!(Number.isFinite(intervalMs) && intervalMs > 0)) {
      throw this.misused('every()', 'a number of milliseconds above 0', intervalMs);
    }
    const timed = this.isolated(callback);
    if (this.abort.signal.aborted) return { cancel: () => undefined };
    const timer = every(this.around.clock, intervalMs, timed);
    return this.ending(() => timer.cancel());
  }

  /** A timer that ends with the plugin. */
  private ending(end: () => void): Timer {
    this.endings.add(end);
    return {
      cancel: () => {
        end();
        this.endings.delete(end);
      },
    };
  }

  /** The callback of a timer, whose failures are the plugin's. */
  private isolated(callback: () => unknown): () => void {
    const subject = `a timer of ${this.owner}`;
    if (typeof callback !== 'function') throw this.misused('a timer', 'a function', callback);
    const failed = (cause: unknown): void => this.failed({ hook: 'every', subject, cause });
    return () => {
      try {
        const returned = this.run(subject, callback);
        if (isPromise(returned)) returned.then(undefined, failed);
      } catch (thrown) {
        failed(thrown);
      }
    };
  }
}

/** The options of adding a plugin while the scheduler runs. */
export interface AddPluginOptions {
  /** A plugin of the same name stays, and this one is ignored. Default false: it is replaced. */
  readonly idempotent?: boolean;
  /** For a definition or a class; checked against its schema. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Default `log`. */
  readonly onError?: OnError;
}

/** A plugin as people see it. */
export interface PluginInfo {
  readonly name: string;
  /** The place from which it was loaded. */
  readonly source: string;
  readonly onError: OnError;
  /** False after its hook threw and `onError` was `disable`. */
  readonly enabled: boolean;
  readonly errorCount: number;
  readonly hooks: readonly (HookCounters & { readonly hook: HookName })[];
  /** Policy slots that it fills. */
  readonly slots: readonly SlotName[];
  readonly commands: readonly string[];
}

// Plugins of workers and nannies.

/** A plugin that is to be there. */
export interface LocalEntry extends UseEntry {
  /** Default: its own. */
  readonly name?: string;
  /** The treatment of a plugin whose hook throws. Default `log`. */
  readonly onError?: OnError;
}

/** A plugin in a list that a program gives: an entry, or the definition, class or instance itself. */
export type LocalPluginInput =
  | LocalEntry
  | WorkerPluginDefinition
  | WorkerPlugin
  | NannyPluginDefinition
  | NannyPlugin
  | (new (options: never) => object);

/** The entry of a plugin in a list; the thing itself stands for an entry without options. */
export function localEntry(input: LocalPluginInput): LocalEntry {
  return typeof input === 'object' && 'use' in input ? input : { use: input };
}

/** The surroundings of the plugins of one worker or nanny. */
interface LocalPluginsParts<Context> {
  readonly kind: Exclude<PluginKind, 'plugin'>;
  readonly resolver: PluginResolver;
  /** The places of the modules of plugins that clients add. Default: everywhere. */
  readonly modules?: ModuleLimit | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Adds what is special to the kind. */
  readonly context: (base: LocalPluginContext) => Context;
  /** A plugin whose `onError` is `crash` failed. */
  readonly onCrash: (error: YardmasterError) => void;
  /** Plugins have come or gone. */
  readonly onChange?: () => void;
}

/** The facts about a plugin that can be looked at. */
interface LocalPluginInfo {
  readonly name: string;
  readonly enabled: boolean;
  readonly errorCount: number;
}

/** The plugins of a worker or a nanny, in order. */
export class LocalPlugins<Context extends LocalPluginContext, Hooks extends object> {
  private hooks: HookCalls<Hooks>;
  private readonly plugins = new Map<string, HostedPlugin>();
  private readonly host: PluginHost<HostedPlugin>;
  private isClosed = false;

  constructor(private readonly parts: LocalPluginsParts<Context>) {
    const { kind, clock, log, context, onCrash, onChange } = parts;
    const hooks = new HookRegistry<Hooks>(clock, kind);
    hooks.onSlow = (message) => log.warn({}, message);
    this.hooks = hooks.compile();
    const report = (error: YardmasterError): void => {
      log.error({ err: error, code: error.code, ...error.data }, error.message);
    };
    this.host = new PluginHost<HostedPlugin>({
      clock,
      hooks,
      plugins: this.plugins,
      make: (blueprint) => new HostedPlugin(blueprint, { clock, log, hooks, report }),
      contextOf: (plugin) => plugin.guarded(context(plugin.baseContext())),
      changed: () => {
        this.hooks = hooks.compile();
        onChange?.();
      },
      report,
      crashed: (_plugin, error) => onCrash(error),
      checkOpen: () => this.checkOpen(),
    });
  }

  get infos(): readonly LocalPluginInfo[] {
    return [...this.plugins.values()].map(({ name, observer: { isDetached, errorCount } }) => {
      return { name, enabled: !isDetached, errorCount };
    });
  }

  /**
   * Sets up a plugin that a client has named. One of the same name is replaced, and then closed.
   * @returns its name
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_PLUGIN_SETUP`, `ERR_CLOSED`, `ERR_MODULE_REFUSED`
   */
  add(entry: LocalEntry): Promise<string> {
    return this.host.change(() => this.setUp(entry, undefined, this.parts.modules));
  }

  /**
   * Sets up what a configuration lists, in order.
   * @param onFailure - gets what cannot be set up; without it, that is thrown
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG` when the configuration is wrong, also when it
   *   lists two of one name
   */
  async addConfigured(
    entries: readonly LocalPluginInput[],
    onFailure?: (error: unknown) => void,
  ): Promise<void> {
    const section = this.parts.kind === 'worker-plugin' ? 'plugins' : 'nannyPlugins';
    const unique = new UniqueNames(`${this.parts.kind.replace('-', ' ')}s`, IN_CODE);
    for (const [index, entry] of entries.map(localEntry).entries()) {
      try {
        await this.host.change(() =>
          this.setUp(entry, (name, source) => unique.add(name, source, ['worker', section, index])),
        );
      } catch (error) {
        if (isMisconfigured(error) || onFailure === undefined) throw error;
        onFailure(error);
      }
    }
  }

  /** Closes a plugin. Returns whether it was there. */
  remove(name: string): Promise<boolean> {
    return this.host.change(async () => {
      const plugin = this.plugins.get(name);
      if (plugin !== undefined) await this.host.remove(plugin);
      return plugin !== undefined;
    });
  }

  /** Closes all, the newest first. Never rejects. */
  async close(): Promise<void> {
    await this.host.settled();
    await this.host.beforeClose();
    this.isClosed = true;
    await this.host.closeAll();
  }

  /** True when any plugin has that hook. */
  has(hook: keyof Hooks): boolean {
    return this.hooks[hook].length > 0;
  }

  /** Calls a hook of all that have it. Never throws. */
  call<Hook extends keyof Hooks>(
    hook: Hook,
    ...args: Hooks[Hook] extends (...given: infer Args) => unknown ? Args : never
  ): void {
    for (const call of this.hooks[hook]) (call as (...given: typeof args) => void)(...args);
  }

  private async setUp(
    { use, options, onError = 'log', name }: LocalEntry,
    checkName?: (name: string, source: string) => void,
    modules?: ModuleLimit,
  ): Promise<string> {
    const { resolver, kind } = this.parts;
    const resolved = await resolver.resolve(use, kind, undefined, modules);
    const found = blueprintOf(resolved, { kind, onError, place: AT_RUN_TIME, options });
    const blueprint = { ...found, name: name ?? found.name };
    if (checkName === undefined || kind === 'nanny-plugin') refuseProviders(blueprint, this.owner);
    checkName?.(blueprint.name, blueprint.source);
    await blueprint.load(resolver);
    await this.host.addStarted(blueprint);
    return blueprint.name;
  }

  private checkOpen(): void {
    if (this.isClosed) throw new YardmasterError('ERR_CLOSED', `this ${this.owner} closes`);
  }

  private get owner(): string {
    return this.parts.kind === 'worker-plugin' ? 'worker' : 'nanny';
  }
}

/** True when the configuration is wrong, and not only the setup of the plugin. */
function isMisconfigured(error: unknown): boolean {
  return [error, error instanceof Error ? error.cause : undefined].some(
    (one) => YardmasterError.is(one, 'ERR_PLUGIN_LOAD') || YardmasterError.is(one, 'ERR_CONFIG'),
  );
}

/** The plugins of one worker, or of its nanny, that clients have registered with the scheduler. */
export class RemotePlugins {
  /** Those that the scheduler wants here and that are there, by name. */
  private readonly added = new Map<string, RemotePlugin>();

  /**
   * @param onFailure - called with a plugin that the scheduler wants and that could not be loaded
   */
  constructor(
    private readonly plugins: Pick<LocalPlugins<never, object>, 'add' | 'remove'>,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /** Adds and removes plugins until there are those that the scheduler wants. Never rejects. */
  async agree(wanted: readonly RemotePlugin[]): Promise<void> {
    const names = new Set(wanted.map(({ name }) => name));
    for (const name of [...this.added.keys()]) {
      if (!names.has(name)) await this.attempt(() => this.remove(name));
    }
    for (const plugin of wanted) {
      const isThere = isEqual(this.added.get(plugin.name), plugin);
      if (!isThere) await this.attempt(() => this.add(plugin));
    }
  }

  /**
   * Adds or removes one plugin, as the scheduler asks.
   * @throws YardmasterError as the plugin set does, `ERR_PROTOCOL`
   */
  async answer({ action, plugin }: WireMessage): Promise<WireMessage> {
    const { name, use, options } = plugin as RemotePlugin;
    if (action === 'remove') {
      return { name, wasThere: await this.remove(name) };
    }
    if (action !== 'add' || (options !== undefined && !isPlainObject(options))) {
      throw new YardmasterError('ERR_PROTOCOL', `a plugin cannot be ${String(action)}ed`);
    }
    await this.add({ name, use, ...(options === undefined ? {} : { options }) });
    return { name };
  }

  private async add(plugin: RemotePlugin): Promise<void> {
    await this.plugins.add(plugin);
    this.added.set(plugin.name, plugin);
  }

  private async remove(name: string): Promise<boolean> {
    const wasThere = await this.plugins.remove(name);
    this.added.delete(name);
    return wasThere;
  }

  private async attempt(change: () => Promise<unknown>): Promise<void> {
    try {
      await change();
    } catch (error) {
      this.onFailure(error);
    }
  }
}
