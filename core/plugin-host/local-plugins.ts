import { type Clock, every, type Timer } from '../api/clock.ts';
import { type ErrorCode, YardmasterError } from '../api/errors.ts';
import type { LocalPluginContext } from '../api/local-plugins.ts';
import type { Logger, PluginContext, UseEntry } from '../api/plugin.ts';
import { IN_CODE } from '../config/errors.ts';
import type { OnError } from '../config/types.ts';
import { countData, countText, FailureCount, isReported } from '../util/failure-count.ts';
import { isPromise } from '../util/is-promise.ts';
import { AT_RUN_TIME } from './loading/extension-options.ts';
import { namedLogger } from '../host/named-logger.ts';
import { checkHookNames } from './hook-check.ts';
import type { PluginKind } from './hook-names.ts';
import { blueprintOf } from './loading/plugin-blueprint.ts';
import type { PluginResolver } from './loading/plugin-resolver.ts';
import { UniqueNames } from './loading/unique-names.ts';
import { withTimeout } from '../host/with-timeout.ts';

/** Time that a plugin has to be set up, and to be torn down. */
const PHASE_TIMEOUT_MS = 10_000;

/** A plugin that is to be there. */
export interface LocalEntry extends UseEntry {
  /** Default: its own. */
  readonly name?: string;
  /** What happens when a hook throws. Default `log`. */
  readonly onError?: OnError;
}

/** What the plugins of one worker or nanny live in. */
export interface LocalPluginsParts<Context> {
  readonly kind: Exclude<PluginKind, 'plugin'>;
  readonly resolver: PluginResolver;
  readonly clock: Clock;
  readonly log: Logger;
  /** Adds what is special to the kind. */
  readonly context: (base: LocalPluginContext) => Context;
  /** A plugin whose `onError` is `crash` failed. */
  readonly onCrash: (error: YardmasterError) => void;
  /** Plugins have come or gone. */
  readonly onChange?: () => void;
}

/** Hooks by name, and what to do in the end. */
type Instance = Readonly<Record<string, unknown>> & {
  close?(): void | Promise<void>;
};

interface Plugin {
  readonly name: string;
  readonly onError: OnError;
  instance: Instance;
  readonly abort: AbortController;
  readonly timers: Set<Timer>;
  errorCount: number;
  isDetached: boolean;
  readonly failures: FailureCount;
  /** Hooks that have returned a promise, which is reported once. */
  readonly asyncHooks: Set<string>;
}

/** What can be looked at. */
export interface LocalPluginInfo {
  readonly name: string;
  readonly enabled: boolean;
  readonly errorCount: number;
}

/**
 * The plugins of a worker or a nanny, in order. An error that a plugin throws affects no other
 * plugin: it is logged and counted and, depending on the configuration of the plugin, ends the
 * plugin or its owner.
 */
export class LocalPlugins<Context extends LocalPluginContext, Hooks extends object> {
  private readonly plugins = new Map<string, Plugin>();
  /** Changes happen one after the other. */
  private changes: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(private readonly parts: LocalPluginsParts<Context>) {}

  get infos(): readonly LocalPluginInfo[] {
    return [...this.plugins.values()].map(({ name, isDetached, errorCount }) => {
      return { name, enabled: !isDetached, errorCount };
    });
  }

  /**
   * Sets a plugin up. One of the same name is torn down before.
   * @returns its name
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_PLUGIN_SETUP`, `ERR_CLOSED`
   */
  add(entry: LocalEntry): Promise<string> {
    return this.change(() => this.setUp(entry));
  }

  /**
   * Sets up what a configuration lists, in order.
   * @param onFailure - gets what cannot be set up; without it, that is thrown
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG` when the configuration is wrong, also when it
   *   lists two of one name
   */
  async addConfigured(
    entries: readonly LocalEntry[],
    onFailure?: (error: unknown) => void,
  ): Promise<void> {
    const section = this.parts.kind === 'worker-plugin' ? 'plugins' : 'nannyPlugins';
    const unique = new UniqueNames(`${this.parts.kind.replace('-', ' ')}s`, IN_CODE);
    for (const [index, entry] of entries.entries()) {
      try {
        await this.change(() =>
          this.setUp(entry, (name, source) => unique.add(name, source, ['worker', section, index])),
        );
      } catch (error) {
        const isWrong = ['ERR_PLUGIN_LOAD', 'ERR_CONFIG'].some((code) =>
          YardmasterError.is(error, code as ErrorCode),
        );
        if (isWrong || onFailure === undefined) throw error;
        onFailure(error);
      }
    }
  }

  /** Tears it down. Returns whether it was there. */
  remove(name: string): Promise<boolean> {
    return this.change(() => this.closePlugin(name));
  }

  /** Tears all down, the newest first. Never rejects. */
  async close(): Promise<void> {
    await this.changes;
    this.isClosed = true;
    for (const name of [...this.plugins.keys()].reverse()) await this.closePlugin(name);
  }

  /** Whether any plugin has that hook. */
  has(hook: keyof Hooks & string): boolean {
    for (const { isDetached, instance } of this.plugins.values()) {
      if (!isDetached && typeof instance[hook] === 'function') return true;
    }
    return false;
  }

  /** Calls a hook of all that have it. Never throws. */
  call<Hook extends keyof Hooks & string>(
    hook: Hook,
    ...args: Hooks[Hook] extends (...given: infer Args) => void ? Args : never
  ): void {
    for (const plugin of this.plugins.values()) {
      const { instance, isDetached } = plugin;
      const method = instance[hook];
      if (isDetached || typeof method !== 'function') continue;
      try {
        const returned: unknown = Reflect.apply(method, instance, args);
        if (isPromise(returned)) this.onPromise(plugin, hook, returned);
      } catch (thrown) {
        this.failed(plugin, hook, thrown);
      }
    }
  }

  /** Hooks are synchronous: nothing waits for a promise. What it is rejected with is a failure, too. */
  private onPromise(plugin: Plugin, hook: string, promise: PromiseLike<unknown>): void {
    const { name, asyncHooks } = plugin;
    promise.then(undefined, (thrown: unknown) => this.failed(plugin, hook, thrown));
    if (asyncHooks.has(hook)) return;
    asyncHooks.add(hook);
    plugin.errorCount++;
    const error = new YardmasterError(
      'ERR_HOOK_ASYNC',
      `${hook} of the plugin "${name}" returned a promise, which is not awaited; make it synchronous, and start what is slow elsewhere`,
      { plugin: name, hook },
    );
    this.report(error);
    this.obeyOnError(plugin, error);
  }

  private change<T>(run: () => Promise<T>): Promise<T> {
    const result = this.changes.then(() => {
      if (!this.isClosed) return run();
      throw new YardmasterError('ERR_CLOSED', `this ${this.owner} closes`);
    });
    this.changes = result.catch(() => undefined); // The caller gets the error.
    return result;
  }

  private async setUp(
    entry: LocalEntry,
    checkName?: (name: string, source: string) => void,
  ): Promise<string> {
    const { resolver, kind, onChange } = this.parts;
    const { use, options, onError = 'log' } = entry;
    const resolved = await resolver.resolve(use, kind);
    const given = options === undefined ? {} : { options };
    const blueprint = blueprintOf(resolved, { kind, onError, place: AT_RUN_TIME, ...given });
    const name = entry.name ?? blueprint.name;
    checkName?.(name, blueprint.source);
    await this.closePlugin(name);
    const plugin: Plugin = {
      name,
      onError,
      instance: {},
      abort: new AbortController(),
      timers: new Set(),
      errorCount: 0,
      isDetached: false,
      failures: new FailureCount(),
      asyncHooks: new Set(),
    };
    const context = this.parts.context(this.baseContext(plugin));
    try {
      // Its kind was checked: it is one that wants this context.
      const setup = blueprint.setup(context as unknown as PluginContext);
      plugin.instance = (await this.inTime(plugin, 'setup', setup)) as Instance;
      checkHookNames(name, plugin.instance, kind, 'ERR_PLUGIN_SETUP');
    } catch (cause) {
      this.stop(plugin);
      throw failure(`the plugin "${name}" could not be set up`, name, cause);
    }
    this.plugins.set(name, plugin);
    onChange?.();
    return name;
  }

  private async closePlugin(name: string): Promise<boolean> {
    const plugin = this.plugins.get(name);
    if (plugin === undefined) return false;
    this.plugins.delete(name);
    this.parts.onChange?.();
    try {
      await this.inTime(plugin, 'close', Promise.resolve(plugin.instance.close?.()));
    } catch (cause) {
      this.report(failure(`the plugin "${name}" could not be torn down`, name, cause));
    }
    this.stop(plugin);
    return true;
  }

  private stop(plugin: Plugin): void {
    plugin.isDetached = true;
    for (const timer of plugin.timers) timer.cancel();
    plugin.timers.clear();
    const message = `the plugin "${plugin.name}" was removed`;
    plugin.abort.abort(new YardmasterError('ERR_CLOSED', message, { plugin: plugin.name }));
  }

  private inTime<T>(plugin: Plugin, phase: string, running: Promise<T>): Promise<T> {
    return withTimeout(this.parts.clock, running, PHASE_TIMEOUT_MS, () => {
      return new YardmasterError(
        'ERR_TIMEOUT',
        `its ${phase} took longer than ${PHASE_TIMEOUT_MS / 1000} s`,
        { plugin: plugin.name, phase },
      );
    });
  }

  private baseContext(plugin: Plugin): LocalPluginContext {
    const { clock, log } = this.parts;
    return {
      name: plugin.name,
      clock,
      log: namedLogger(log, plugin.name),
      signal: plugin.abort.signal,
      every: (intervalMs, callback) => this.every(plugin, intervalMs, callback),
      report: (error) => {
        plugin.errorCount++;
        this.report(error);
      },
    };
  }

  private every(plugin: Plugin, intervalMs: number, callback: () => unknown): Timer {
    if (plugin.abort.signal.aborted) return { cancel: () => undefined };
    const timer = every(this.parts.clock, intervalMs, () => {
      try {
        const returned = callback();
        if (isPromise(returned)) {
          returned.then(undefined, (thrown: unknown) => this.failed(plugin, 'every', thrown));
        }
      } catch (thrown) {
        this.failed(plugin, 'every', thrown);
      }
    });
    plugin.timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        plugin.timers.delete(timer);
      },
    };
  }

  private failed(plugin: Plugin, hook: string, cause: unknown): void {
    const { name, failures } = plugin;
    plugin.errorCount++;
    const count = failures.add(hook);
    const error = new YardmasterError(
      'ERR_PLUGIN_HOOK',
      `${hook} of the plugin "${name}" threw: ${messageOf(cause)}${countText(count, hook === 'every' ? 'timer' : 'hook')}`,
      { plugin: name, hook, ...countData(count) },
      { cause },
    );
    if (isReported(count)) this.report(error);
    this.obeyOnError(plugin, error);
  }

  private obeyOnError(plugin: Plugin, error: YardmasterError): void {
    if (plugin.onError === 'disable' && !plugin.isDetached) {
      this.stop(plugin);
      this.parts.onChange?.();
    } else if (plugin.onError === 'crash') this.parts.onCrash(error);
  }

  private report(error: YardmasterError): void {
    this.parts.log.error({ err: error, code: error.code, ...error.data }, error.message);
  }

  private get owner(): string {
    return this.parts.kind === 'worker-plugin' ? 'worker' : 'nanny';
  }
}

function failure(what: string, plugin: string, cause: unknown): YardmasterError {
  if (YardmasterError.is(cause, 'ERR_PLUGIN_LOAD')) return cause;
  if (YardmasterError.is(cause, 'ERR_CONFIG')) return cause;
  const message = `${what}: ${messageOf(cause)}`;
  return new YardmasterError('ERR_PLUGIN_SETUP', message, { plugin }, { cause });
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
