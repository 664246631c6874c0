import { YardmasterError } from '../api/errors.ts';
import type { HookTable, SchedulerHooks } from '../api/hooks.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import type { OnError } from '../config/types.ts';
import type { HookCalls } from '../kernel/ports.ts';
import { countData, countText, FailureCount, isReported } from '../util/failure-count.ts';
import { isPromise } from '../util/is-promise.ts';
import { inject } from './injection/di.ts';
import { checkHookNames } from './hook-check.ts';
import { hooksOf, type PluginKind } from './hook-names.ts';
import { CLOCK } from './injection/tokens.ts';

export const HOOKS: Token<HookRegistry> = token('hook-registry');

type Handler = (...args: unknown[]) => unknown;
/** Hooks have at most five parameters; naming them saves an array for each call. */
type Call = (a?: unknown, b?: unknown, c?: unknown, d?: unknown, e?: unknown) => void;

/** How often a hook of a plugin was called, and how long a sample of the calls took. */
export interface HookCounters {
  calls: number;
  errors: number;
  /** Every 64th call is timed: reading the clock costs more than most hooks. */
  timedCalls: number;
  timedMs: number;
  maxMs: number;
}

/** One call in this many is timed. A power of two. */
const SAMPLE = 64;

/** What a plugin did wrong. */
export interface PluginFailure {
  /** `workerAdded`, `every`, `event:worker-added` */
  readonly hook: string;
  /** For messages: `the hook workerAdded of plugin "counter"`. */
  readonly subject: string;
  readonly cause: unknown;
  readonly stimulusId?: string;
}

/** Called when a hook, timer or listener of a plugin threw, or a hook returned a promise. Must not throw. */
type HookFailureHandler = (observer: Observer, report: FailureReport) => void;

/** One failure of a plugin. */
export interface FailureReport {
  readonly error: YardmasterError;
  /** The 1st, 2nd, 4th, 8th … of its kind. The others are only counted. */
  readonly isReported: boolean;
}

/** The hooks of one plugin. */
export class Observer {
  /** A detached observer is not called any more, not even for the rest of the present stimulus. */
  isDetached = false;
  /** All errors of its hooks, timers and listeners. */
  errorCount = 0;
  /** By hook, timer and listener. */
  readonly failures = new FailureCount();
  /** Hooks that have returned a promise, which is reported once. */
  readonly asyncHooks = new Set<string>();

  constructor(
    readonly plugin: string,
    readonly onError: OnError,
    /** The hooks are called as methods of this object. */
    public instance: HookTable = {},
    readonly counters = new Map<string, HookCounters>(),
  ) {}
}

/**
 * The hooks of all plugins, compiled into plain arrays of functions that never throw.
 * Order: hooks with `order: 'pre'`, then those without, then `'post'`; by registration within each.
 */
export class HookRegistry<Hooks extends object = SchedulerHooks> {
  /** The stimulus that a scheduler handles, for the data of errors. Written by its host. */
  stimulusId: string | undefined;
  /** Written by the host of the plugins. */
  onFailure: HookFailureHandler = () => undefined;

  private readonly observers: Observer[] = [];
  private readonly names: readonly string[];

  /** @param kind - the plugins whose hooks these are */
  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    private readonly kind: PluginKind = 'plugin',
  ) {
    this.names = hooksOf(kind);
  }

  /**
   * @param replaced - an observer whose place in the order it takes
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when a hook is not a function
   */
  add(observer: Observer, replaced?: Observer): void {
    this.check(observer);
    const index = replaced === undefined ? -1 : this.observers.indexOf(replaced);
    if (index < 0) this.observers.push(observer);
    else this.observers[index] = observer;
    if (replaced !== undefined) replaced.isDetached = true;
  }

  remove(observer: Observer): void {
    observer.isDetached = true;
    const index = this.observers.indexOf(observer);
    if (index >= 0) this.observers.splice(index, 1);
  }

  /** Which hooks a plugin has. */
  hooksOf({ instance }: Observer): string[] {
    return this.names.filter((name) => hookIn(instance, name) !== undefined);
  }

  /**
   * All hooks as the kernel calls them.
   * @param own - the host's own observers, which run first and must not throw
   */
  compile(own: Partial<Hooks> = {}): HookCalls<Hooks> {
    const calls: Record<string, readonly Call[]> = {};
    for (const name of this.names) {
      const first = hookIn(own, name) as Call | undefined;
      calls[name] = Object.freeze([...(first === undefined ? [] : [first]), ...this.callsOf(name)]);
    }
    return Object.freeze(calls) as unknown as HookCalls<Hooks>;
  }

  private callsOf(name: string): Call[] {
    const bands: Record<'pre' | 'normal' | 'post', Call[]> = { pre: [], normal: [], post: [] };
    for (const observer of this.observers) {
      const hook = hookIn(observer.instance, name);
      if (hook === undefined) continue;
      const handler = handlerOf(hook) as Handler;
      const order = typeof hook === 'function' ? 'normal' : (hook as { order: 'pre' }).order;
      bands[order].push(this.isolate(observer, name, handler));
    }
    return [...bands.pre, ...bands.normal, ...bands.post];
  }

  private isolate(observer: Observer, name: string, handler: Handler): Call {
    const { instance } = observer;
    const counters = observer.counters.get(name) ?? newCounters();
    observer.counters.set(name, counters);
    return (a, b, c, d, e) => {
      if (observer.isDetached) return;
      const isTimed = (counters.calls++ & (SAMPLE - 1)) === 0;
      const startMs = isTimed ? this.clock.nowMs() : 0;
      try {
        const result = handler.call(instance, a, b, c, d, e);
        if (result !== undefined) this.checkResult(observer, name, counters, result);
      } catch (cause) {
        counters.errors++;
        this.failed(observer, this.failureOf(observer, name, cause));
      }
      if (!isTimed) return;
      const durationMs = this.clock.nowMs() - startMs;
      counters.timedCalls++;
      counters.timedMs += durationMs;
      if (durationMs > counters.maxMs) counters.maxMs = durationMs;
    };
  }

  /**
   * A hook, timer or listener of a plugin threw. Counts it, and has the host do what the plugin's
   * `onError` says.
   */
  failed(observer: Observer, { hook, subject, cause, stimulusId }: PluginFailure): void {
    const { plugin } = observer;
    const count = observer.failures.add(hook);
    const message = cause instanceof Error ? cause.message : String(cause);
    const error = new YardmasterError(
      'ERR_PLUGIN_HOOK',
      `${subject} threw: ${message}${countText(count, kindOf(hook))}`,
      { plugin, hook, ...countData(count), ...during(stimulusId) },
      { cause },
    );
    this.report(observer, { error, isReported: isReported(count) });
  }

  private checkResult(
    observer: Observer,
    name: string,
    counters: HookCounters,
    result: unknown,
  ): void {
    if (!isPromise(result)) return;
    const { plugin } = observer;
    result.then(undefined, (cause: unknown) => {
      counters.errors++;
      this.failed(observer, this.failureOf(observer, name, cause));
    });
    if (observer.asyncHooks.has(name)) return;
    observer.asyncHooks.add(name);
    counters.errors++;
    const error = new YardmasterError(
      'ERR_HOOK_ASYNC',
      `the hook ${name} of plugin "${plugin}" returned a promise, which is not awaited; make it synchronous, and start what is slow elsewhere`,
      { plugin, hook: name, ...during(this.stimulusId) },
    );
    this.report(observer, { error, isReported: true });
  }

  private failureOf({ plugin }: Observer, hook: string, cause: unknown): PluginFailure {
    const subject = `the hook ${hook} of plugin "${plugin}"`;
    return { hook, subject, cause, ...during(this.stimulusId) };
  }

  private report(observer: Observer, report: FailureReport): void {
    observer.errorCount++;
    this.onFailure(observer, report);
  }

  /** A hook that is silently never called is the worst of all; so names are checked where they can be. */
  private check({ plugin, instance }: Observer): void {
    for (const name of this.names) {
      const hook = hookIn(instance, name);
      if (hook === undefined || typeof handlerOf(hook) === 'function') continue;
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `the hook ${name} of plugin "${plugin}" is neither a function nor { order: 'pre' | 'post', handler }`,
        { plugin, hook: name },
      );
    }
    checkHookNames(plugin, instance, this.kind, 'ERR_PLUGIN_SETUP');
  }
}

function during(stimulusId: string | undefined): { readonly stimulusId?: string } {
  return stimulusId === undefined ? {} : { stimulusId };
}

function hookIn(instance: object, name: string): unknown {
  return (instance as Readonly<Record<string, unknown>>)[name];
}

/** For messages about repeated failures. */
function kindOf(hook: string): string {
  if (hook === 'every') return 'timer';
  if (hook === 'enqueue') return 'call';
  return hook.startsWith('event:') ? 'listener' : 'hook';
}

function handlerOf(hook: unknown): unknown {
  if (typeof hook !== 'object' || hook === null) return hook;
  const { order, handler } = hook as { order?: unknown; handler?: unknown };
  return order === 'pre' || order === 'post' ? handler : undefined;
}

function newCounters(): HookCounters {
  return { calls: 0, errors: 0, timedCalls: 0, timedMs: 0, maxMs: 0 };
}
