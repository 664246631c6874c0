import { inspect } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { sharedMemoryOf } from '../../core/util/bytes.ts';
import { either, oneOf, type Rules, wholeNumber } from '../../core/shared/schema.ts';
import { countOf, isPlainObject, isReference } from '../../core/util/values.ts';
import {
  actorBehind,
  type ActorClass,
  type ActorHandle,
  isActorClass,
  isTaskFunction,
  mentionsResult,
  type TaskFunction,
} from '../tasks/index.ts';
import { callSite } from './call-site.ts';
import { chunkOutcomes, type ChunkShape, chunkShape, ChunkSize, type Outcome } from './chunks.ts';
import { type Persisted, withPersistence } from './content-keys.ts';
import type { KeyEntry } from './entry.ts';
import { entryOfFuture, Future, holdingOfFuture } from './future.ts';
import {
  type Graph,
  markOf,
  type PackedTask,
  packGraph,
  packTask,
  packTaskArguments,
  reduceTree,
  requestedKeys,
  type ResultIn,
  TaskNode,
  withBasis,
} from './graph.ts';
import { uniqueKey } from './keys.ts';
import {
  type Argument,
  type ArgumentsOf,
  checkOptions,
  type ColumnsOf,
  refuseOption,
  storeSpec,
  type SubmitOptions,
  withFurther,
  withLimitOf,
} from './options.ts';
import { checkSequence, isStream, rowsOf, streamIn } from './rows.ts';
import type { Session } from './session.ts';
import {
  type ChunkOptions,
  IN_FLIGHT,
  type Items,
  resultsInOrder,
  type StreamCalls,
  type StreamedBy,
  type StreamOptions,
} from './streams.ts';

/**
 * Milliseconds within which submissions do not precede each other: of what is submitted one by one (Dask's
 * value), and of whole graphs, which run one after the other (Dask lets them interleave for 60 s).
 */
const SUBMIT_FIFO_MS = 100;
const COMPUTE_FIFO_MS = 0;

/** Futures of the requested tasks of a graph, in the order of the request. */
export type ComputedFutures<G extends Graph, Keys extends readonly (keyof G)[]> = {
  [Index in keyof Keys]: Future<ResultIn<G, Keys[Index]>>;
};

/** Submits tasks: a client does, and `client.with(options)` does so with further options. */
export class Submitter {
  /**
   * @param options - have been checked
   * @param open - the number of open calls, which `maxOpen` bounds
   */
  constructor(
    protected readonly session: Session,
    protected readonly options: SubmitOptions = {},
    private readonly open = { count: 0 },
  ) {}

  /**
   * The same with further options: `client.with({ retries: 2 }).submit(…)`.
   * @throws YardmasterError `ERR_GRAPH_INVALID` when an option is not usable
   */
  with(options: SubmitOptions): Submitter {
    const both = withFurther(this.options, options);
    const open = options.maxOpen === undefined ? this.open : { count: 0 };
    return new Submitter(this.session, both, open);
  }

  /**
   * Computes a function on the cluster. Returns at once.
   *
   * @param args - values, futures, and structures that hold futures anywhere inside
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` naming the argument, `ERR_GRAPH_INVALID`,
   *   `ERR_FRAME` when the arguments do not fit into one message, `ERR_CANCELLED` when an argument or
   *   the signal is cancelled, `ERR_QUEUE_FULL` when as many calls are open as `maxOpen` says, `ERR_CLOSED`
   */
  submit<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...args: ArgumentsOf<Args>
  ): Future<Awaited<Result>> {
    return new Future(this.session, this.submitWatched(fn, args, this.options.key));
  }

  /**
   * Computes a function on the cluster and gives its result: as `submit(fn, …args).result()`, for results that nothing else
   * needs. The cluster keeps neither task nor result any longer than that.
   *
   * @throws YardmasterError as {@link submit}, and as the result of its future does
   */
  async call<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...args: ArgumentsOf<Args>
  ): Promise<Awaited<Result>> {
    const entry = this.submitWatched(fn, args, this.options.key);
    return this.session.resultOf(entry) as Promise<Awaited<Result>>;
  }

  /**
   * Makes an actor: an object of a class that lives on one worker. The result of the future is its
   * handle, through which its methods are called. Errors as for {@link submit}.
   */
  submitActor<Args extends readonly unknown[], T extends object>(
    type: ActorClass<Args, T>,
    ...args: ArgumentsOf<Args>
  ): Future<ActorHandle<T>> {
    const isKnown: boolean = isActorClass(type);
    if (!isKnown) {
      const { name } = Object(type) as { readonly name?: unknown };
      throw new YardmasterError(
        'ERR_FUNCTION_MISSING',
        `${typeof name === 'string' ? name : typeof type} is not a class that workers know; give it to defineTasks(import.meta.url, { … })`,
      );
    }
    return this.submit(type, ...args);
  }

  /**
   * Computes a function for each item, or for each tuple of several sequences of the same length; `all(value)` stands
   * for a sequence of nothing but that value. Errors as for {@link submit}.
   *
   * Of items that come one by one, in an `AsyncIterable`, it gives the results in their order, also one by one. It takes
   * no more items than `inFlight` allows while their results are not read.
   */
  map<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...columns: ColumnsOf<Args>
  ): Future<Awaited<Result>>[];
  map<Item, Result, const Options extends StreamOptions>(
    fn: TaskFunction<[item: Item], Result>,
    items: AsyncIterable<Argument<Item>>,
    options?: Options,
  ): AsyncGenerator<StreamedBy<Options, Result>, void, undefined>;
  map<Args extends readonly unknown[], Result, const Options extends ChunkOptions>(
    fn: TaskFunction<Args, Result>,
    ...columns: [...columns: ColumnsOf<Args>, options: Options]
  ): AsyncGenerator<StreamedBy<Options, Result>, void, undefined>;
  map(fn: TaskFunction, ...columns: readonly unknown[]): unknown {
    this.checkSignal();
    if (this.options.key !== undefined) {
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        'the option key names one task; map makes many',
      );
    }
    if (columns.some(isStream)) {
      const [items, options] = streamIn(columns);
      return this.stream(fn, items, options, true);
    }
    const options = columns.at(-1);
    if (isPlainObject(options) && 'chunk' in options) {
      const given = columns.slice(0, -1);
      return this.stream(fn, rowsOf(given), options, true, chunkShape(given));
    }
    const rows = rowsOf(columns);
    this.checkOpenCalls(rows.length);
    // All are packed before any is sent: what cannot be sent is an error of the whole call.
    const packed = rows.map((row) => this.packOne(fn, row, undefined));
    const entries = packed.map((item) => this.sendOne(item));
    this.watchEnds(entries, fn);
    return entries.map((entry) => new Future(this.session, entry));
  }

  /**
   * Computes a function for each item, at most `inFlight` tasks at once, and keeps no results. Fails with the first failure,
   * and cancels what is under way then.
   *
   * @returns how many items there were
   */
  async forEach<Item>(
    fn: TaskFunction<[item: Item]>,
    items: Iterable<Argument<Item>> | AsyncIterable<Argument<Item>>,
    options: Omit<StreamOptions, 'errors'> = {},
  ): Promise<number> {
    checkSequence('forEach', items);
    let count = 0;
    const ends = this.stream(fn, items, options, false);
    while ((await ends.next()).done !== true) count++;
    return count;
  }

  /**
   * Combines parts to one result, as a tree: `fn` is called with an array of up to `fanIn` parts (default 8), then with the results
   * of these calls, until one is left. So no task needs all parts at once.
   *
   * @throws YardmasterError `ERR_GRAPH_INVALID` when there are no parts, or `fanIn` is below 2
   */
  reduce<Part>(
    fn: TaskFunction<[parts: Part[]], Part | Promise<Part>>,
    parts: Iterable<Argument<Part>>,
    options: { readonly fanIn?: number } = {},
  ): Future<Part> {
    this.checkSignal();
    checkSequence('reduce', parts);
    this.checkOpenCalls(1);
    const root = reduceTree(
      [...parts],
      options,
      (group) => new Future(this.session, this.submitOne(fn, [group], undefined)),
    );
    this.watchEnds([entryOfFuture(root)], fn);
    return root as Future<Part>;
  }

  /**
   * @param wantsResults - false: that they are there is enough
   * @param shape - of items that are rows of arguments. Default: each is the one argument
   */
  private stream(
    fn: TaskFunction,
    items: Items<unknown>,
    options: StreamOptions = {},
    wantsResults: boolean,
    shape?: ChunkShape,
  ): AsyncGenerator<unknown, void, undefined> {
    const {
      inFlight = IN_FLIGHT,
      chunk,
      errors = 'raise',
    } = checkOptions(wantsResults ? 'client.map' : 'client.forEach', options, STREAM_RULES);
    if (chunk !== undefined) this.checkChunks(fn, chunk);
    const { each, ownArgs, argsOf } = shape ?? SINGLE;
    const size = new ChunkSize(chunk ?? 1);
    const submit = (some: readonly unknown[]): Future<unknown> => {
      const entry =
        chunk === undefined
          ? this.submitWatched(fn, some, undefined)
          : this.submitWatched(fn, argsOf(some as never), undefined, each);
      return new Future(this.session, entry);
    };
    const outcomes: StreamCalls<unknown>['outcomes'] = (future, count, first) =>
      chunk === undefined
        ? outcomeOf(future, wantsResults)
        : chunkOutcomes(future, { first, count, size });
    // A chunk would wait for all of their futures, and fail with the first that fails.
    const isAlone = (item: unknown): boolean =>
      chunk !== undefined &&
      isReference(item) &&
      mentionsResult(ownArgs(item as never), (it) => this.keyOfFuture(it));
    const { maxOpen = Infinity } = this.options;
    const limits = { inFlight: Math.min(inFlight, maxOpen), errors };
    const whenEnded = this.whenEnded.bind(this);
    return resultsInOrder(items, { size, isAlone, whenEnded, submit, outcomes }, limits);
  }

  private whenEnded(listener: (error: unknown) => void): () => void {
    const { signal: closing } = this.session;
    const { signal } = this.options;
    const onClosed = (): void => listener(closing.reason);
    const onAborted = (): void => listener(abortedError('while a stream took items', signal));
    if (closing.aborted) onClosed();
    else if (signal?.aborted === true) onAborted();
    closing.addEventListener('abort', onClosed);
    const unlisten = signal && onAbort(signal, onAborted);
    return () => {
      closing.removeEventListener('abort', onClosed);
      unlisten?.();
    };
  }

  private checkChunks(fn: TaskFunction, chunk: number | 'auto'): void {
    if (this.options.persist !== undefined && this.options.persist !== false && chunk === 'auto') {
      refuseOption('chunk', chunk, 'a number with persist: results are kept by chunk');
    }
    if (typeof this.options.limit === 'function') {
      refuseOption('chunk', chunk, 'left out where a function finds the limit of each call');
    }
    checkFunction(fn);
    if (fn.version !== '' && !isActorClass(fn)) return;
    refuseOption('chunk', chunk, 'left out: only functions of JavaScript are called in chunks');
  }

  /**
   * Computes what `keys` need of a graph. Returns futures, in the order of the keys.
   *
   * @throws YardmasterError `ERR_GRAPH_INVALID` with the task and the missing key, or the key that
   *   is taken; `ERR_GRAPH_CYCLE` with the cycle; `ERR_NOT_SERIALISABLE`, `ERR_CLOSED`
   */
  compute<G extends Graph, Key extends keyof G & string>(
    graph: G,
    keys: Key,
  ): Future<ResultIn<G, Key>>;
  compute<G extends Graph, const Keys extends readonly (keyof G & string)[]>(
    graph: G,
    keys: Keys,
  ): ComputedFutures<G, Keys>;
  compute(graph: Graph, keys: string | readonly string[]): unknown {
    this.session.checkTaking();
    this.checkSignal();
    const { namespace = '' } = this.options;
    const requested = requestedKeys(graph, keys).map((key) => namespace + key);
    this.checkOpenCalls(requested.length);
    const futures = this.submitGraph(graph, requested);
    this.watchEnds(futures.map(entryOfFuture), this);
    return typeof keys === 'string' ? futures[0] : futures;
  }

  /**
   * @internal As {@link compute}, with a key of the caller's choice for each name. Not for options with a
   * signal.
   */
  computeAs(
    graph: Graph,
    names: readonly string[],
    keyOfName: (name: string) => string,
  ): Future<unknown>[] {
    this.session.checkTaking();
    return this.submitGraph(graph, names.map(keyOfName), keyOfName);
  }

  /** @internal Whether this client holds the key, or a graph of it defines it. */
  isTaken(key: string): boolean {
    const { table } = this.session;
    return table.get(key) !== undefined || table.definitions.has(key);
  }

  private submitWatched(
    fn: TaskFunction,
    args: readonly unknown[],
    givenKey: string | undefined,
    each?: readonly number[],
  ): KeyEntry {
    this.checkSignal();
    this.checkOpenCalls(1);
    const entry = this.submitOne(fn, args, givenKey, each);
    this.watchEnds([entry], fn);
    return entry;
  }

  private submitOne(
    fn: TaskFunction,
    args: readonly unknown[],
    givenKey: string | undefined,
    each?: readonly number[],
  ): KeyEntry {
    return this.sendOne(this.packOne(fn, args, givenKey, each));
  }

  private packOne(
    fn: TaskFunction,
    args: readonly unknown[],
    givenKey: string | undefined,
    each?: readonly number[],
  ): PackedTask {
    this.session.checkTaking();
    checkFunction(fn);
    const packed = packTaskArguments(
      fn.name,
      args,
      (value) => this.keyOfFuture(value),
      this.session,
    );
    // A chunk takes longer than a call: durations are expected by this name.
    const name = each === undefined ? fn.name : `${fn.name}-chunk`;
    const isUnique = givenKey === undefined && this.isUnique(fn, packed.bytes);
    const task = packTask({
      isPure: this.options.pure ?? true,
      key: givenKey ?? (isUnique ? () => uniqueKey(name) : (hash) => `${name}-${hash}`),
      isUnique,
      fn,
      each,
      args: packed,
      options: withLimitOf(this.options, args),
      codeRoot: this.session.codeRoot,
    });
    const { table } = this.session;
    const item = withBasis(task, (input) => table.get(input)?.mark);
    table.check(item.task.key, item.definition, markOf(item));
    return item;
  }

  private sendOne(item: PackedTask): KeyEntry {
    const { table, outgoing } = this.session;
    const { key } = item.task;
    const kept = this.persisted([item], [key]);
    const known = table.get(key);
    if (known !== undefined) {
      known.contentKey ??= kept?.contentKeys.get(key);
      table.submitAgain(known, item.task);
      return table.add(key, item.definition);
    }
    outgoing.submit({
      tasks: [kept?.packed[0]?.task ?? item.task],
      keys: [key],
      fifoTimeoutMs: this.options.fifoTimeoutMs ?? SUBMIT_FIFO_MS,
      nbytes: item.nbytes,
      submittingTask: this.session.submittingTask,
      mayBeKept: kept !== undefined,
    });
    const entry = table.add(key, item.definition, markOf(item));
    entry.noteSubmission(item.task);
    entry.graphs = 1;
    table.noteAsked([key]);
    entry.contentKey = kept?.contentKeys.get(key);
    return entry;
  }

  private submitGraph(
    graph: Graph,
    keys: readonly string[],
    keyOfName?: (name: string) => string,
  ): Future<unknown>[] {
    const { table, outgoing } = this.session;
    for (const node of Object.values(graph) as unknown[]) {
      if (node instanceof TaskNode) checkFunction(node.fn);
    }
    const packed = packGraph(graph, keys, {
      keyOfFuture: (value) => this.keyOfFuture(value),
      isKnown: (key) => table.get(key) !== undefined,
      markOf: (key) => table.get(key)?.mark,
      options: this.options,
      way: this.session,
      codeRoot: this.session.codeRoot,
      namespace: this.options.namespace,
      keyOfName,
    });
    for (const item of packed) table.check(item.task.key, item.definition, markOf(item));
    const kept = this.persisted(packed, keys);
    outgoing.submit({
      tasks: (kept?.packed ?? packed).map(({ task }) => task),
      keys: [...new Set(keys)],
      fifoTimeoutMs: this.options.fifoTimeoutMs ?? COMPUTE_FIFO_MS,
      nbytes: bytesOf(packed),
      submittingTask: this.session.submittingTask,
      mayBeKept: kept !== undefined,
    });
    const items = new Map(packed.map((item) => [item.task.key, item]));
    const definitions = new Map(packed.map(({ task, definition }) => [task.key, definition]));
    table.definitions.add(definitions, [...new Set(keys)]);
    const futures = keys.map((key) => {
      const known = table.get(key);
      const contentKey = kept?.contentKeys.get(key);
      if (known !== undefined) known.contentKey ??= contentKey;
      const item = items.get(key);
      const entry = table.add(key, item?.definition, item && markOf(item));
      // The scheduler compares the graph with what was submitted before.
      if (item !== undefined) (known ?? entry).noteSubmission(item.task);
      entry.contentKey ??= contentKey;
      return new Future(this.session, entry);
    });
    table.noteAsked(keys);
    for (const key of new Set(keys)) {
      const held = table.get(key);
      if (held !== undefined) held.graphs++;
    }
    return futures;
  }

  /** Undefined when no result of these is to be kept. */
  private persisted(packed: readonly PackedTask[], keys: readonly string[]): Persisted | undefined {
    if (!packed.some(({ persist = false }) => persist !== false)) return undefined;
    const { resultStore } = this.options;
    return withPersistence(packed, {
      store: resultStore === undefined ? undefined : storeSpec(resultStore),
      outputs: new Set(keys),
      client: this.session.id,
      contentKeyOf: (key) => this.session.table.get(key)?.contentKey,
    });
  }

  /** Every actor gets a unique key, and so does a call with shared memory: that may have changed since the last one. */
  private isUnique(fn: TaskFunction, args: Uint8Array): boolean {
    return sharedMemoryOf(args) !== undefined || !(this.options.pure ?? !isActorClass(fn));
  }

  /** The key behind a future or a handle of an actor; a task that uses one depends on it. */
  private keyOfFuture(value: unknown): string | undefined {
    if (!(value instanceof Future)) return actorBehind(value)?.description.key;
    const { owner, entry, isReleased } = holdingOfFuture(value);
    if (owner !== this.session) refuseFuture(value.key, 'belongs to another client');
    if (isReleased) refuseFuture(value.key, 'was released');
    if (entry.status === 'cancelled') {
      throw new YardmasterError(
        'ERR_CANCELLED',
        `the future of "${value.key}" is cancelled and cannot be an argument; submit it again`,
        { key: value.key },
        { cause: entry.error() },
      );
    }
    return value.key;
  }

  private checkSignal(): void {
    const { signal } = this.options;
    if (signal?.aborted === true) throw abortedError('before anything was submitted', signal);
  }

  private checkOpenCalls(more: number): void {
    const { maxOpen = Infinity } = this.options;
    const { count } = this.open;
    if (count + more <= maxOpen) return;
    throw new YardmasterError(
      'ERR_QUEUE_FULL',
      `${countOf(more, 'call')} beside ${count} that are open would be more than maxOpen (${maxOpen}) allows. ` +
        'Come back later, or raise it.',
      { openCount: count, maxOpen },
    );
  }

  /** Notes where they were submitted, and ends them when the signal or the deadline says so. */
  private watchEnds(entries: readonly KeyEntry[], submitted: object): void {
    const { session } = this;
    const { signal, deadlineMs, maxOpen } = this.options;
    const site = callSite(submitted);
    for (const entry of entries) entry.site ??= site;
    if (maxOpen !== undefined) this.countOpen(entries);
    if (deadlineMs === undefined && signal === undefined) return;
    const open = new Set<KeyEntry>();
    for (const entry of entries) if (!entry.isSettled) open.add(entry);
    if (open.size === 0) return;
    const abort = (): void => {
      const cause: unknown = signal?.reason;
      session.abortEntries([...open], `its signal was aborted (${textOf(cause)})`, cause);
    };
    const stopWatching = signal && onAbort(signal, abort);
    const timer =
      deadlineMs === undefined
        ? undefined
        : session.clock.setTimer(deadlineMs, () => session.expireEntries([...open], deadlineMs));
    const onSettled = (entry: KeyEntry): void => {
      open.delete(entry);
      if (open.size > 0) return;
      timer?.cancel();
      stopWatching?.();
    };
    for (const entry of open) entry.onSettled(onSettled);
    // The function that finds the limit of a call may have aborted it.
    if (signal?.aborted === true) abort();
  }

  private countOpen(entries: readonly KeyEntry[]): void {
    for (const entry of entries) {
      this.open.count++;
      entry.onSettled(() => this.open.count--);
    }
  }
}

/** The callbacks of each signal that has some. Not weak: they end with their calls, and a weak entry costs a microsecond more. */
const abortions = new Map<AbortSignal, Set<() => void>>();

/**
 * Calls back when a signal is aborted. It has one listener for all of its calls, as Node warns of a leak from eleven on, and
 * none when they are over: with one, a signal of `AbortSignal.any` would live as long as those that it follows.
 * @returns what ends that
 */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = abortions.get(signal) ?? new Set();
  callbacks.add(callback);
  if (callbacks.size === 1) {
    abortions.set(signal, callbacks);
    signal.addEventListener('abort', abortAll);
  }
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0) return;
    abortions.delete(signal);
    signal.removeEventListener('abort', abortAll);
  };
}

function abortAll(this: AbortSignal): void {
  for (const callback of abortions.get(this) ?? []) callback();
}

function abortedError(when: string, signal: AbortSignal | undefined): YardmasterError {
  const cause: unknown = signal?.reason;
  return new YardmasterError('ERR_CANCELLED', `the signal was aborted ${when}`, {}, { cause });
}

const STREAM_RULES: Rules<StreamOptions> = {
  inFlight: wholeNumber(1),
  chunk: {
    ...either(wholeNumber(1), { const: 'auto' }),
    wanted: "a whole number above 0, or 'auto'",
  },
  errors: oneOf('raise', 'return'),
};

/** Each item is the only argument of a call. */
const SINGLE: ChunkShape = { each: [0], ownArgs: (item) => [item], argsOf: (items) => [items] };

async function outcomeOf(future: Future<unknown>, wantsResults: boolean): Promise<Outcome[]> {
  try {
    const value = wantsResults ? await future.result() : undefined;
    const error = wantsResults ? undefined : await future.error();
    return [{ value, error }];
  } catch (thrown) {
    return [{ value: undefined, error: thrown as Error }];
  }
}

// What submissions are checked for, and what they are refused with.

/** Whatever a signal was aborted with, as text that can be sent. Never throws. */
function textOf(reason: unknown): string {
  const text = reason instanceof Error ? `${reason.name}: ${reason.message}` : inspect(reason);
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

function checkFunction(fn: unknown): void {
  if (isTaskFunction(fn)) return;
  const what = typeof fn === 'function' ? `the function ${fn.name || '(anonymous)'}` : String(fn);
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `${what} is not known to workers; define it in a separate module with defineTasks(import.meta.url, { … })`,
  );
}

function refuseFuture(key: string, why: string): never {
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the future of "${key}" ${why} and cannot be an argument`,
    { key },
  );
}

function bytesOf(packed: readonly PackedTask[]): number {
  return packed.reduce((sum, { nbytes }) => sum + nbytes, 0);
}
