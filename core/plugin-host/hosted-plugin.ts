import { type Clock, every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { LocalPluginContext } from '../api/local-plugins.ts';
import type { Logger, PluginInstance } from '../api/plugin.ts';
import { namedLogger } from '../host/named-logger.ts';
import { nextToReport } from '../host/repeated-failures.ts';
import { show } from '../shared/words.ts';
import { isPromise } from '../util/is-promise.ts';
import { type HookRegistry, Observer, type PluginFailure } from './hook-table.ts';
import type { Blueprint } from './loading/plugin-blueprint.ts';

/** What every plugin is connected to, whether of a scheduler, a worker or a nanny. */
export interface PluginSurroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hooks: Pick<HookRegistry, 'failed' | 'run'>;
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
  private readonly abort = new AbortController();
  private readonly endings = new Set<() => void>();

  constructor(
    readonly blueprint: Blueprint,
    private readonly around: PluginSurroundings,
  ) {
    const { name, onError, isTrusted } = blueprint;
    this.observer = new Observer(name, onError, {}, new Map(), isTrusted);
    this.log = namedLogger(around.log, blueprint.name);
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

  /** What every `setup` receives. */
  baseContext(): LocalPluginContext {
    return {
      name: this.name,
      clock: this.around.clock,
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

  /** What throws after the plugin is gone is counted, and ends nothing. */
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
      `${method}() of ${this.owner} takes ${wanted}, got ${show(got)}${advice}`,
      { plugin: this.name, method },
    );
  }

  protected closedError(what = 'was removed'): YardmasterError {
    return new YardmasterError('ERR_CLOSED', `${this.owner} ${what}`, { plugin: this.name });
  }

  private report(error: YardmasterError): void {
    const { observer } = this;
    observer.errorCount++;
    const kind = `report:${error.message}`;
    const next = nextToReport(observer.failures, error, { kind, of: 'kind' });
    if (next !== undefined) this.around.report(next);
  }

  private every(intervalMs: number, callback: () => unknown): Timer {
    if (!(Number.isFinite(intervalMs) && intervalMs > 0)) {
      throw this.misused('every', 'a number of milliseconds above 0', intervalMs);
    }
    if (typeof callback !== 'function') throw this.misused('every', 'a function to call', callback);
    if (this.abort.signal.aborted) return { cancel: () => undefined };
    const failed = (cause: unknown): void => {
      this.failed({ hook: 'every', subject: `a timer of ${this.owner}`, cause });
    };
    const timer = every(this.around.clock, intervalMs, () => {
      try {
        const returned = this.run(`a timer of ${this.owner}`, callback);
        if (isPromise(returned)) returned.then(undefined, failed);
      } catch (thrown) {
        failed(thrown);
      }
    });
    const end = (): void => timer.cancel();
    this.endings.add(end);
    return {
      cancel: () => {
        end();
        this.endings.delete(end);
      },
    };
  }
}
