import { messageOf, YardmasterError } from '../api/errors.ts';
import type {
  EventName,
  EventSource,
  GraphSubmission,
  HookTable,
  SchedulerEvents,
  SchedulerHooks,
} from '../api/hooks.ts';
import { nextToReport } from '../host/log.ts';
import { type Clock, elapsedMs } from '../api/clock.ts';
import type { OnError } from '../config/types.ts';
import type { HookCalls } from '../kernel/ports.ts';
import { countData, countText, FailureCount, isReported } from '../util/failure-count.ts';
import { readOnly } from '../shared/read-only.ts';
import { show } from '../shared/words.ts';
import { isPromise } from '../util/values.ts';
import { collaborator, inject } from './injection.ts';
import { CLOCK } from '../host/tokens.ts';
import { checkHookNames, checkListener, hooksOf, type PluginKind } from './contracts.ts';

type Handler = (...args: unknown[]) => unknown;
const ORDERS = ['pre', 'normal', 'post'] as const;
type Order = (typeof ORDERS)[number];
/** Hooks have at most five parameters; naming them saves an array for each call. */
type Call = (a?: unknown, b?: unknown, c?: unknown, d?: unknown, e?: unknown) => unknown;

/**
 * The calls of a hook of a plugin and their duration in real time. Every call of an extension is timed. Of
 * the calls of a built-in plugin one in `TRUSTED_CALLS_PER_TIMED` is timed and stands for the others, because reading
 * the clock twice takes longer than most of these hooks.
 */
export interface HookCounters {
  calls: number;
  errors: number;
  totalMs: number;
  maxMs: number;
}

/** A power of two. */
const TRUSTED_CALLS_PER_TIMED = 64;
/** A power of two. Of the calls of a policy one in so many is timed: rules are asked several times for each task. */
const POLICY_CALLS_PER_TIMED = 16;
/** A call of so many milliseconds is an exception: it says nothing of the calls that are not timed. */
const LONG_MS = 1;
/** Stimuli after a slow one in which every call of a policy is timed. */
const WATCHED_STIMULI = 10_000;

/** Milliseconds of real time from which a stimulus is slow: nothing else is served meanwhile. */
export const SLOW_MS = 500;
/** A call of a plugin is named when it takes longer, unless the operator says otherwise. */
const SLOW_CALL_MS = 100;
/** At most one warning about one call in this time. */
const QUIET_MS = 60_000;

/** The time that the calls of one hook of a plugin, or method of a policy, have taken of a stimulus. */
export interface HookShare {
  /** For messages: `the hook workerAdded of plugin "counter"`. */
  readonly subject: string;
  stimulus: number;
  calls: number;
  ms: number;
}

/** The long calls of an extension. */
interface SlowCalls {
  /** The end of the latest long call. */
  atMs: number;
  longestMs: number;
  /** The next warning may be given then. */
  quietUntilMs: number;
  unsaid: number;
}

export interface PluginFailure {
  /** `workerAdded`, `every`, `enqueue` */
  readonly hook: string;
  /** For messages: `the hook workerAdded of plugin "counter"`. */
  readonly subject: string;
  readonly cause: unknown;
  readonly stimulusId?: string;
}

/** Called when a hook or timer of a plugin threw, or a hook returned a promise. Must not throw. */
type HookFailureHandler = (observer: Observer, report: FailureReport) => void;

export interface FailureReport {
  readonly error: YardmasterError;
  /** The 1st, 2nd, 4th, 8th … of its kind. The others are only counted. */
  readonly isReported: boolean;
}

export class Observer {
  /** A detached observer is not called any more, not even for the rest of the present stimulus. */
  isDetached = false;
  /** All errors of its hooks and timers. */
  errorCount = 0;
  /** Its hooks, as they were when it was added. */
  readonly hooks = new Map<string, { readonly order: Order; readonly handler: Handler }>();
  /** By hook and timer. */
  readonly failures = new FailureCount();
  /** Counts the failures: the observer that the plugin was set up with. */
  readonly owner: Observer;
  /** Hooks that have returned a promise, which is reported once. */
  readonly asyncHooks = new Set<string>();

  constructor(
    readonly plugin: string,
    readonly onError: OnError,
    /** The hooks are called as methods of this object. */
    public instance: HookTable = {},
    readonly counters = new Map<string, HookCounters>(),
    /** True when its hooks see the state itself. Others get views that cannot change it. */
    readonly isTrusted = false,
    owner?: Observer,
  ) {
    this.owner = owner ?? this;
  }

  /** More hooks of the same plugin, which come and go by themselves. */
  extended(hooks: HookTable): Observer {
    const { plugin, onError, counters, isTrusted } = this;
    return new Observer(plugin, onError, hooks, counters, isTrusted, this);
  }
}

/**
 * The hooks of all plugins, compiled into plain arrays of functions that never throw.
 * Order: hooks with `order: 'pre'`, then those without, then `'post'`; by registration within each.
 */
@collaborator
export class HookRegistry<Hooks extends object = SchedulerHooks> {
  /** Milliseconds of real time from which a call of a plugin is slow. */
  slowMs = SLOW_CALL_MS;
  /** Called when a call of a plugin or policy took long, once a minute. */
  onSlow: (message: string) => void = () => undefined;
  /** Written by the host of the plugins. */
  onFailure: HookFailureHandler = () => undefined;

  /** The stimulus that a scheduler handles, for the data of errors. */
  private stimulusId: string | undefined;
  private stimulus = 0;
  /** Until this stimulus every call of a policy is timed. */
  private watchedUntil = 0;
  /** By subject. */
  private readonly shares = new Map<string, HookShare>();
  /** By subject: the times of its long calls, and those that were left unsaid. */
  private readonly slow = new Map<string, SlowCalls>();
  private readonly observers: Observer[] = [];
  private readonly names: readonly string[];
  /** The plugins that admit graphs. */
  private admitting: (readonly [plugin: string, admit: Call])[] = [];
  /** The ports that were compiled last; undefined: none yet. */
  current: HookCalls<Hooks> | undefined;

  /** @param kind - the plugins whose hooks these are */
  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    private readonly kind: PluginKind = 'plugin',
  ) {
    this.names = hooksOf(kind);
  }

  /** A scheduler begins with a stimulus: what the hooks take from now on is part of it. */
  begin(stimulusId: string): void {
    this.stimulusId = stimulusId;
    this.stimulus++;
  }

  /** The time that hooks have taken of the present stimulus, the slowest first. */
  get sharesOfStimulus(): readonly HookShare[] {
    const { stimulus } = this;
    const shares = [...this.shares.values()].filter((share) => share.stimulus === stimulus);
    return shares.sort((a, b) => b.ms - a.ms);
  }

  /** A stimulus has ended. After a slow one every call of a policy is timed for a while, to find the cause of the next. */
  end(durationMs: number): void {
    if (durationMs >= this.slowMs) this.watchedUntil = this.stimulus + WATCHED_STIMULI;
  }

  /**
   * The call of a policy, timed: what is slow is named, and counts as part of its stimulus.
   * @param subject - for messages: `score of the policy of workerSelection "mine"`
   */
  timed(subject: string, call: Call): Call {
    const { clock } = this;
    const share = this.shareOf(subject);
    let calls = 0;
    return (a, b, c, d) => {
      const isWatched = this.stimulus < this.watchedUntil;
      if (!isWatched && (calls++ & (POLICY_CALLS_PER_TIMED - 1)) !== 0) return call(a, b, c, d);
      const startMs = elapsedMs(clock);
      try {
        return call(a, b, c, d);
      } finally {
        const durationMs = elapsedMs(clock) - startMs;
        this.addTo(share, durationMs, isWatched ? 1 : POLICY_CALLS_PER_TIMED);
        if (durationMs < SLOW_MS) this.tookLong(subject, durationMs);
      }
    };
  }

  /**
   * Runs something of a plugin that is no hook, and warns when it takes long.
   * @param subject - for the message: `a timer of plugin "counter"`
   */
  run<T>(subject: string, call: () => T): T {
    const startMs = elapsedMs(this.clock);
    try {
      return call();
    } finally {
      this.tookLong(subject, elapsedMs(this.clock) - startMs);
    }
  }

  /** Remembers that a call took long. */
  wasSlow(subject: string, durationMs: number): SlowCalls {
    const slow = this.slow.get(subject) ?? { atMs: 0, longestMs: 0, quietUntilMs: 0, unsaid: 0 };
    slow.atMs = elapsedMs(this.clock);
    slow.longestMs = Math.max(slow.longestMs, durationMs);
    this.slow.set(subject, slow);
    return slow;
  }

  /** The extensions that took long within the last minute, each with its longest call in milliseconds. */
  slowCalls(): ReadonlyMap<string, number> {
    const sinceMs = elapsedMs(this.clock) - QUIET_MS;
    const recent = [...this.slow].filter(([, { atMs }]) => atMs >= sinceMs);
    return new Map(recent.map(([subject, { longestMs }]) => [subject, longestMs]));
  }

  private shareOf(subject: string): HookShare {
    const known = this.shares.get(subject);
    if (known !== undefined) return known;
    const share = { subject, stimulus: 0, calls: 0, ms: 0 };
    this.shares.set(subject, share);
    return share;
  }

  private tookLong(subject: string, durationMs: number): void {
    if (durationMs < this.slowMs) return;
    // In virtual time a busy machine is no news.
    if (durationMs < SLOW_MS && this.clock.elapsedMs !== undefined) return;
    const slow = this.wasSlow(subject, durationMs);
    const nowMs = slow.atMs;
    if (nowMs < slow.quietUntilMs) {
      slow.unsaid++;
      return;
    }
    const { unsaid } = slow;
    slow.quietUntilMs = nowMs + QUIET_MS;
    slow.unsaid = 0;
    const more = unsaid === 0 ? '' : `; it did so ${unsaid} more times since this was said`;
    const whom = { plugin: 'scheduler', 'worker-plugin': 'worker', 'nanny-plugin': 'nanny' }[
      this.kind
    ];
    const took = Math.round(durationMs);
    this.onSlow(
      `${subject} blocked the ${whom} for ${took} ms: nothing else was served meanwhile; do less at once, or in a thread${more}`,
    );
  }

  /**
   * @param replaced - an observer whose place in the order it takes
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when a hook is not a function, or cannot be read
   */
  add(observer: Observer, replaced?: Observer): void {
    this.read(observer);
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

  /**
   * All hooks as the kernel calls them.
   * @param own - the host's own observers, which run first and must not throw
   */
  compile(own: Partial<Hooks> = {}): HookCalls<Hooks> {
    const calls: Record<string, readonly Call[]> = {};
    for (const name of this.names) {
      const first = (own as Readonly<Record<string, Call | undefined>>)[name];
      calls[name] = Object.freeze([...(first === undefined ? [] : [first]), ...this.callsOf(name)]);
    }
    const names = this.having('admit').map(({ observer }) => observer.plugin);
    this.admitting = names.map((plugin, index) => [plugin, calls['admit']?.[index] as Call]);
    this.current = Object.freeze(calls) as unknown as HookCalls<Hooks>;
    return this.current;
  }

  private callsOf(name: string): Call[] {
    return this.having(name).map(({ observer, handler }) => {
      return this.isolate(observer, name, name === 'admit' ? answering(handler) : handler);
    });
  }

  /** The plugins that have a hook, in the order in which they are called. */
  private having(name: string): { readonly observer: Observer; readonly handler: Handler }[] {
    const all = this.observers.flatMap((observer) => {
      const hook = observer.hooks.get(name);
      return hook === undefined ? [] : [{ observer, ...hook }];
    });
    return ORDERS.flatMap((wanted) => all.filter(({ order }) => order === wanted));
  }

  /** The refusal of the first plugin that does not admit a graph. */
  refusalOf(
    submission: GraphSubmission,
  ): { readonly plugin: string; readonly reason: string } | undefined {
    for (const [plugin, admit] of this.admitting) {
      const answer = admit(submission);
      if (isRefusal(answer)) return { plugin, reason: answer.refuse };
    }
    return undefined;
  }

  private isolate(observer: Observer, name: string, handler: Handler): Call {
    const { instance } = observer;
    const counters = observer.counters.get(name) ?? newCounters();
    observer.counters.set(name, counters);
    // Hooks of workers and nannies are shown texts, and the variables of a process, which they are to change.
    const isShielded = !observer.isTrusted && this.kind === 'plugin';
    const callsPerTimed = observer.isTrusted ? TRUSTED_CALLS_PER_TIMED : 1;
    const { clock, kind } = this;
    const share = this.shareOf(`the hook ${name} of plugin "${observer.plugin}"`);
    return (a, b, c, d, e) => {
      if (observer.isDetached) return undefined;
      if (isShielded) {
        // Views of what a hook is shown; the other arguments of all hooks are texts.
        a = readOnly(a);
        b = readOnly(b);
        c = readOnly(c);
        e = readOnly(e);
      }
      const isTimed = (counters.calls++ & (callsPerTimed - 1)) === 0;
      const startMs = isTimed ? elapsedMs(clock) : 0;
      let result: unknown;
      try {
        result = handler.call(instance, a, b, c, d, e);
        if (result !== undefined) this.checkResult(observer, name, counters, result);
      } catch (cause) {
        counters.errors++;
        this.failed(observer, this.failureOf(observer, name, cause));
      }
      if (!isTimed) return result;
      const durationMs = elapsedMs(clock) - startMs;
      counters.totalMs += durationMs * callsPerTimed;
      if (durationMs > counters.maxMs) counters.maxMs = durationMs;
      if (kind === 'plugin') this.addTo(share, durationMs, callsPerTimed);
      // What takes longer is named with the stimulus that it is part of.
      if (kind !== 'plugin' || durationMs < SLOW_MS) this.tookLong(share.subject, durationMs);
      return result;
    };
  }

  /** @param calls - that the timed one stands for; a long one stands for itself only */
  private addTo(share: HookShare, durationMs: number, calls: number): void {
    if (share.stimulus !== this.stimulus) {
      share.stimulus = this.stimulus;
      share.calls = 0;
      share.ms = 0;
    }
    if (durationMs >= LONG_MS) calls = 1;
    share.calls += calls;
    share.ms += durationMs * calls;
  }

  /**
   * A hook or timer of a plugin threw. Counts it, and has the host do what the plugin's
   * `onError` says.
   */
  failed(observer: Observer, { hook, subject, cause, stimulusId }: PluginFailure): void {
    const { plugin } = observer;
    const count = observer.owner.failures.add(hook);
    const message = messageOf(cause);
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
    observer.owner.errorCount++;
    this.onFailure(observer.owner, report);
  }

  /** A hook that is silently never called is the worst of all; so names are checked where they can be. */
  private read({ plugin, instance, hooks }: Observer): void {
    const refused = (hook: string, why: string, options?: ErrorOptions): YardmasterError => {
      const message = `the hook ${hook} of plugin "${plugin}" ${why}`;
      return new YardmasterError('ERR_PLUGIN_SETUP', message, { plugin, hook }, options);
    };
    for (const name of this.names) {
      try {
        const hook = (instance as Readonly<Record<string, unknown>>)[name];
        if (hook === undefined) continue;
        const { order, handler } = orderedHook(hook);
        if (typeof handler === 'function') hooks.set(name, { order, handler: handler as Handler });
      } catch (cause) {
        throw refused(name, `cannot be read: ${messageOf(cause)}`, { cause });
      }
      if (hooks.has(name)) continue;
      throw refused(name, "is neither a function nor { order: 'pre' | 'post', handler }");
    }
    checkHookNames(plugin, instance, this.kind, 'ERR_PLUGIN_SETUP');
  }
}

/** An `admit` whose answer can be used. */
function answering(admit: Handler): Handler {
  return function (this: unknown, submission) {
    const answer = admit.call(this, submission);
    if (answer === true || isPromise(answer) || isRefusal(answer)) return answer;
    const shown = answer === undefined ? 'nothing' : show(answer);
    throw new TypeError(`its answer is ${shown} instead of true or { refuse: 'why' }`);
  };
}

function isRefusal(answer: unknown): answer is { readonly refuse: string } {
  return typeof (answer as { refuse?: unknown } | null | undefined)?.refuse === 'string';
}

function during(stimulusId: string | undefined): { readonly stimulusId?: string } {
  return stimulusId === undefined ? {} : { stimulusId };
}

/** For messages about repeated failures. */
function kindOf(hook: string): string {
  if (hook === 'every') return 'timer';
  return hook === 'enqueue' ? 'call' : 'hook';
}

function orderedHook(hook: unknown): { readonly order: Order; readonly handler: unknown } {
  if (typeof hook !== 'object' || hook === null) return { order: 'normal', handler: hook };
  const { order, handler } = hook as { order?: unknown; handler?: unknown };
  return order === 'pre' || order === 'post'
    ? { order, handler }
    : { order: 'normal', handler: undefined };
}

function newCounters(): HookCounters {
  return { calls: 0, errors: 0, totalMs: 0, maxMs: 0 };
}

// Events for the program around a scheduler.

type Listener = (...args: never[]) => unknown;

interface Entry {
  readonly listener: Listener;
  readonly isOnce: boolean;
}

/**
 * The events of a scheduler for the program around it. They are derived from hooks, and held until the stimulus is
 * complete; a listener that throws harms neither the others nor the scheduler.
 */
@collaborator
export class EventBus implements EventSource {
  private readonly listeners = new Map<EventName, readonly Entry[]>();
  private readonly held: (readonly [name: EventName, args: readonly unknown[]])[] = [];
  private isHolding = false;
  private isFlushing = false;
  private readonly failures = new FailureCount();
  /** Written by the owner of the bus: reports that a listener failed, the 1st, 2nd, 4th, 8th … time. */
  onFailure: (error: YardmasterError) => void = () => undefined;

  on<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, { listener, isOnce: false });
  }

  once<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    this.add(name, { listener, isOnce: true });
  }

  off<Name extends EventName>(name: Name, listener: SchedulerEvents[Name]): void {
    checkListener(name, listener);
    const entry = this.of(name).findLast((one) => one.listener === listener);
    if (entry !== undefined) this.remove(name, entry);
  }

  /** Calls the listeners now, or after the present stimulus. */
  emit<Name extends EventName>(name: Name, ...args: Parameters<SchedulerEvents[Name]>): void {
    if (this.of(name).length === 0) return;
    this.held.push([name, args]);
    if (!this.isHolding) this.flush();
  }

  /** From now on events wait for {@link release}. */
  hold(): void {
    this.isHolding = true;
  }

  /** Delivers what waited, in order. */
  release(): void {
    this.isHolding = false;
    this.flush();
  }

  dispose(): void {
    this.listeners.clear();
  }

  private of(name: EventName): readonly Entry[] {
    return this.listeners.get(name) ?? [];
  }

  private add(name: EventName, entry: Entry): void {
    checkListener(name, entry.listener);
    this.listeners.set(name, [...this.of(name), entry]);
  }

  private remove(name: EventName, entry: Entry): void {
    const left = this.of(name).filter((one) => one !== entry);
    this.listeners.set(name, left);
  }

  /** Calls the listeners. What they emit comes after what was emitted before. */
  private flush(): void {
    if (this.isFlushing) return;
    this.isFlushing = true;
    // The loop meets those that are held meanwhile, too. To shift each from a long list would be quadratic.
    for (const [name, args] of this.held) {
      for (const entry of this.of(name)) {
        if (entry.isOnce) this.remove(name, entry);
        this.call(name, entry.listener, args.map(readOnly));
      }
    }
    this.held.length = 0;
    this.isFlushing = false;
  }

  private call(name: EventName, listener: Listener, args: readonly unknown[]): void {
    const failed = (cause: unknown): void => this.report(name, cause);
    try {
      const result = (listener as (...given: unknown[]) => unknown)(...args);
      if (isPromise(result)) result.then(undefined, failed);
    } catch (thrown) {
      failed(thrown);
    }
  }

  private report(name: EventName, cause: unknown): void {
    const hook = `event:${name}`;
    const message = messageOf(cause);
    const thrown = new YardmasterError(
      'ERR_PLUGIN_HOOK',
      `a listener of the event "${name}" threw: ${message}`,
      { hook },
      { cause },
    );
    const error = nextToReport(this.failures, thrown, { kind: hook, of: 'event' });
    if (error !== undefined) this.onFailure(error);
  }
}

/**
 * Observers that derive rarer hooks and the events from the hooks that the kernel calls.
 * @param workerLeft - called first, with the address of a worker that was removed
 */
export function derivedHooks(
  hooks: HookRegistry,
  bus: EventBus,
  workerLeft: (address: string) => void,
): Partial<SchedulerHooks> {
  return {
    taskTransition: (task, _start, finish, stimulusId) => {
      if (finish !== 'erred') return;
      for (const hook of hooks.current?.taskErred ?? []) hook(task, stimulusId);
    },
    taskErred: (task) => bus.emit('task-erred', task),
    graphUpdated: ({ client, tasks }) => bus.emit('graph-submitted', client, tasks.length),
    workerAdded: (worker) => bus.emit('worker-added', worker),
    workerRemoved: (worker, stimulusId, loss) => {
      workerLeft(worker.address);
      bus.emit('worker-removed', worker, stimulusId, loss);
    },
    workerStatusChanged: (worker) => bus.emit('worker-status', worker),
    clientAdded: (client) => bus.emit('client-added', client),
    clientRemoved: (client) => bus.emit('client-removed', client),
    eventLogged: (topic, message) => bus.emit('event', topic, message),
    errorReported: (error) => bus.emit('error', error),
  };
}
