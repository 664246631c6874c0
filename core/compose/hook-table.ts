import { YardmasterError } from '../api/errors.ts';
import { HOOK_NAMES, type HookName, type HookTable, type SchedulerHooks } from '../api/hooks.ts';
import type { Clock } from '../api/clock.ts';
import { hint } from '../config/errors.ts';
import type { OnError } from '../config/types.ts';
import type { HookCalls } from '../kernel/ports.ts';
import { inject, injectable } from './di.ts';
import { CLOCK } from './tokens.ts';

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

/** One call in so many is timed. A power of two. */
const SAMPLE = 64;

/** Told when a hook threw or returned a promise. Must not throw. */
export type HookFailureHandler = (observer: Observer, error: YardmasterError) => void;

/** The hooks of one plugin. */
export class Observer {
  readonly counters = new Map<HookName, HookCounters>();
  /** A detached observer is not called any more, not even for the rest of the present stimulus. */
  isDetached = false;
  /** All errors of its hooks. */
  errorCount = 0;

  constructor(
    readonly plugin: string,
    readonly onError: OnError,
    /** The hooks are called as methods of this object. */
    public instance: HookTable = {},
  ) {}
}

/**
 * The hooks of all plugins, compiled into plain arrays of functions that never throw.
 * Order: hooks with `order: 'pre'`, then those without, then `'post'`; by registration within each.
 */
@injectable()
export class HookRegistry {
  /** The stimulus that is being handled, for the data of errors. Written by the host. */
  stimulusId = '';
  /** Written by the host. */
  onFailure: HookFailureHandler = () => undefined;

  private readonly observers: Observer[] = [];

  constructor(@inject(CLOCK.id) private readonly clock: Clock) {}

  /**
   * @param replaced - an observer whose place in the order it takes
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when a hook is not a function
   */
  add(observer: Observer, replaced?: Observer): void {
    checkHooks(observer);
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
  hooksOf({ instance }: Observer): HookName[] {
    return HOOK_NAMES.filter((name) => instance[name] !== undefined);
  }

  /**
   * All hooks as the kernel calls them.
   * @param own - the host's own observers, which run first and must not throw
   */
  compile(own: Partial<SchedulerHooks> = {}): HookCalls {
    const calls: Record<string, readonly Call[]> = {};
    for (const name of HOOK_NAMES) {
      const first = own[name] as Call | undefined;
      calls[name] = Object.freeze([...(first === undefined ? [] : [first]), ...this.callsOf(name)]);
    }
    return Object.freeze(calls) as unknown as HookCalls;
  }

  private callsOf(name: HookName): Call[] {
    const bands: Record<'pre' | 'normal' | 'post', Call[]> = { pre: [], normal: [], post: [] };
    for (const observer of this.observers) {
      const hook: unknown = observer.instance[name];
      if (hook === undefined) continue;
      const handler = handlerOf(hook) as Handler;
      const order = typeof hook === 'function' ? 'normal' : (hook as { order: 'pre' }).order;
      bands[order].push(this.isolate(observer, name, handler));
    }
    return [...bands.pre, ...bands.normal, ...bands.post];
  }

  private isolate(observer: Observer, name: HookName, handler: Handler): Call {
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
        this.fail(observer, counters, this.hookError(observer, name, cause));
      }
      if (!isTimed) return;
      const durationMs = this.clock.nowMs() - startMs;
      counters.timedCalls++;
      counters.timedMs += durationMs;
      if (durationMs > counters.maxMs) counters.maxMs = durationMs;
    };
  }

  private checkResult(
    observer: Observer,
    name: HookName,
    counters: HookCounters,
    result: unknown,
  ): void {
    const { then } = result as { then?: unknown };
    if (typeof then !== 'function') return;
    const { plugin } = observer;
    Promise.resolve(result).catch((cause: unknown) =>
      this.fail(observer, counters, this.hookError(observer, name, cause)),
    );
    const error = new YardmasterError(
      'ERR_HOOK_ASYNC',
      `the hook ${name} of plugin "${plugin}" returned a promise, which nobody waits for; make it synchronous, and start what is slow elsewhere`,
      { plugin, hook: name, stimulusId: this.stimulusId },
    );
    this.fail(observer, counters, error);
  }

  private hookError(observer: Observer, name: HookName, cause: unknown): YardmasterError {
    const { plugin } = observer;
    const message = cause instanceof Error ? cause.message : String(cause);
    return new YardmasterError(
      'ERR_PLUGIN_HOOK',
      `the hook ${name} of plugin "${plugin}" threw: ${message}`,
      { plugin, hook: name, stimulusId: this.stimulusId },
      { cause },
    );
  }

  private fail(observer: Observer, counters: HookCounters, error: YardmasterError): void {
    counters.errors++;
    observer.errorCount++;
    this.onFailure(observer, error);
  }
}

const LIFECYCLE = ['name', 'setup', 'start', 'beforeClose', 'close'];

/** A hook that is silently never called is the worst of all; so names are checked where they can be. */
function checkHooks({ plugin, instance }: Observer): void {
  for (const name of HOOK_NAMES) {
    const hook: unknown = instance[name];
    if (hook === undefined || typeof handlerOf(hook) === 'function') continue;
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `the hook ${name} of plugin "${plugin}" is neither a function nor { order: 'pre' | 'post', handler }`,
      { plugin, hook: name },
    );
  }
  if (Object.getPrototypeOf(instance) !== Object.prototype) return; // A class has methods of its own.
  const known: string[] = [...HOOK_NAMES, ...LIFECYCLE];
  for (const [key, value] of Object.entries(instance)) {
    if (known.includes(key) || typeof value !== 'function') continue;
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `plugin "${plugin}" has a hook "${key}", which does not exist${hint(key, known)}`,
      { plugin, hook: key },
    );
  }
}

function handlerOf(hook: unknown): unknown {
  if (typeof hook !== 'object' || hook === null) return hook;
  const { order, handler } = hook as { order?: unknown; handler?: unknown };
  return order === 'pre' || order === 'post' ? handler : undefined;
}

function newCounters(): HookCounters {
  return { calls: 0, errors: 0, timedCalls: 0, timedMs: 0, maxMs: 0 };
}
