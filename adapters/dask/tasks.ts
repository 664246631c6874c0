import type { TaskStateName, TaskView } from '../../core/api/index.ts';
import { cancellationIn } from './client-bridge.ts';
import {
  asList,
  entriesOf,
  type Fields,
  isFields,
  listIn,
  numberIn,
  omit,
  toNumber,
} from './wire/codec.ts';
import type { DaskContext, DaskExtension, DaskWorker, ExtensionHooks } from './context.ts';
import { durationMs } from './graph/materialized.ts';
import { measureNamed } from './options.ts';
import { performanceReport } from './report.ts';
import { fieldsOf, pauseMs, workersIn } from './calls.ts';
import { PythonException } from './wire/py-errors.ts';

// `set_metadata` and `get_metadata`: a tree of values that clients share.

/** True for the value that Dask sends for "no default was given": a text, and since 2023.4 a member of an enumeration. */
function isNoDefault(value: unknown): boolean {
  if (value === '__no_default__') return true;
  return isFields(value) && value['__Enum__'] === true && value['name'] === 'no_default';
}

/** Metadata lives as long as the scheduler. */
export function makeMetadata(): DaskExtension {
  const root = new Map<unknown, unknown>();
  return {
    rpc: {
      set_metadata: (request) => {
        const keys = keysOf(request['keys']);
        let branch = root;
        for (const key of keys.slice(0, -1)) {
          const below = branchOf(branch.get(key)) ?? new Map<unknown, unknown>();
          branch.set(key, below);
          branch = below;
        }
        branch.set(keys.at(-1), request['value'] ?? null);
        return null;
      },
      get_metadata: (request) => {
        try {
          return keysOf(request['keys']).reduce(below, root);
        } catch (error) {
          const { default: otherwise } = request;
          const isMissing = error instanceof PythonException && error.type === 'KeyError';
          if (!isMissing || otherwise === undefined || isNoDefault(otherwise)) throw error;
          return otherwise;
        }
      },
    },
  };
}

/** The value under a key. @throws PythonException as Python does for `value[key]` */
function below(value: unknown, key: unknown): unknown {
  const branch = branchOf(value);
  if (branch !== undefined) {
    if (branch.has(key)) return branch.get(key);
    throw new PythonException('KeyError', [keyArgument(key)]);
  }
  const list = asList(value);
  if (list === undefined || typeof key !== 'number') {
    const type = list === undefined ? 'value' : 'tuple';
    throw new PythonException('TypeError', `${type} indices must be integers or slices`);
  }
  const item = list.at(key);
  if (item === undefined) throw new PythonException('IndexError', 'tuple index out of range');
  return item;
}

function keyArgument(key: unknown): string | number {
  return typeof key === 'number' ? key : String(key);
}

function keysOf(keys: unknown): readonly unknown[] {
  return asList(keys) ?? [keys];
}

function branchOf(value: unknown): Map<unknown, unknown> | undefined {
  if (value instanceof Map) return value as Map<unknown, unknown>;
  return isFields(value) ? new Map(entriesOf(value)) : undefined;
}

// How far a set of tasks is, as `distributed.diagnostics.progress` counts it.

interface ProgressRequest {
  readonly tasks: readonly TaskView[];
  /** Also counts what was finished before. */
  readonly complete: boolean;
  /** One bar for each operation. */
  readonly byPrefix: boolean;
}

/** Follows tasks and all that they need. O(tasks below) to begin with, O(1) for each transition. */
export class Progress {
  /** Prefixes by key. */
  private readonly all: ReadonlyMap<string, string>;
  private readonly left: Map<string, string>;
  private ending:
    { readonly status: 'finished' } | { readonly status: 'error'; key: string } | undefined;

  constructor(
    private readonly request: ProgressRequest,
    /** Returns the exception of a failed task in the form that clients receive. */
    private readonly exceptionOf: (key: string) => unknown,
  ) {
    const { tasks, complete } = request;
    const counted = neededBy(tasks, complete);
    this.left = new Map(complete ? neededBy(tasks, false).found : counted.found);
    this.all = new Map([...counted.found, ...tasks.map(entryOf)]);
    const [failed] = counted.failed;
    if (failed !== undefined) this.ending = { status: 'error', key: failed };
    else if (this.left.size === 0) this.ending = { status: 'finished' };
  }

  get isOver(): boolean {
    return this.ending !== undefined;
  }

  onTransition(key: string, start: TaskStateName, finish: TaskStateName): void {
    if (this.ending !== undefined || !this.all.has(key)) return;
    if (finish === 'memory' && start === 'processing') {
      this.left.delete(key);
      if (this.left.size === 0) this.ending = { status: 'finished' };
    } else if (finish === 'erred' || (finish === 'forgotten' && this.left.has(key))) {
      this.ending = { status: 'error', key };
    }
  }

  /** All tasks were forgotten. */
  stop(): void {
    this.ending ??= { status: 'finished' };
  }

  /** As the bar of the client wants it. */
  describe(): Fields {
    const { byPrefix } = this.request;
    const counts = byPrefix
      ? { all: this.countsOf(this.all), remaining: this.countsOf(this.left) }
      : { all: this.all.size, remaining: this.left.size };
    if (this.ending?.status !== 'error') return { ...counts, status: this.ending?.status ?? null };
    const { status, key } = this.ending;
    return { ...counts, status, key, exception: this.exceptionOf(key) };
  }

  /** Prefixes without any such task count 0. */
  private countsOf(keys: ReadonlyMap<string, string>): Map<string, number> {
    const counts = new Map([...this.all.values()].map((prefix) => [prefix, 0]));
    for (const prefix of keys.values()) counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    return counts;
  }
}

function entryOf({ key, prefix }: TaskView): [key: string, prefix: string] {
  return [key, prefix.name];
}

/** The tasks and what they need. @param complete - also where there is a result already */
function neededBy(
  tasks: readonly TaskView[],
  complete: boolean,
): { readonly found: Map<string, string>; readonly failed: string[] } {
  const found = new Map<string, string>();
  const failed: string[] = [];
  const stack = [...tasks];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    if (found.has(task.key) || (!complete && task.whoHas.size > 0)) continue;
    if (task.state === 'erred') failed.push(task.key);
    found.set(...entryOf(task));
    for (const input of task.dependencies) stack.push(input);
  }
  return { found, failed };
}

// `rebalance`: evens out the memory of workers.

/** Between two looks whether a worker has dropped what it was asked to. */
const LOOK_MS = 20;
const LOOKS_MAX = 500;

/** Answers when the results have moved, and the workers that gave them have dropped them. */
export async function rebalance(request: Fields, context: DaskContext): Promise<unknown> {
  const { keys: table } = context;
  const keys = listIn(request, 'keys');
  const workers = workersIn(context, request['workers']);
  const given = {
    ...(keys === undefined ? {} : { keys: table.textsOf(keys) }),
    ...(workers === undefined ? {} : { workers: workers.map(({ address }) => address) }),
    ...rebalanceRules(request),
  };
  const answer = fieldsOf(await context.plugin.run('amm.rebalance', given), 'amm.rebalance');
  const moved = asList(answer['moved']) as readonly string[];
  const senders = asList(answer['senders']) as readonly string[];
  await Promise.all(senders.map((address) => dropped(context, address, moved)));
  const missing = asList(answer['missing']) as readonly string[];
  if (missing.length === 0) return { status: 'OK' };
  return { status: 'partial-fail', keys: table.wiresOf(missing) };
}

/** Dask has these in its configuration alone; here a call may state them by keyword, too. */
function rebalanceRules(request: Fields): Fields {
  const { measure } = request;
  return {
    ...(measure === undefined || measure === null ? {} : { measure: measureNamed(measure) }),
    senderMin: numberIn(request, 'sender_min'),
    recipientMax: numberIn(request, 'recipient_max'),
    gap: numberIn(request, 'sender_recipient_gap'),
  };
}

/**
 * Waits until a worker of Dask has dropped results: it does not confirm that, and callers look at its memory. Gives up
 * when it takes too long, or the worker does not answer.
 */
async function dropped(
  context: DaskContext,
  address: string,
  moved: readonly string[],
): Promise<void> {
  for (let look = 0; look < LOOKS_MAX && context.workers.has(address); look++) {
    const held = await context.pool.call(address, 'keys').catch(() => []);
    const texts = new Set(context.keys.textsOf(asList(held) ?? []));
    const worker = context.cluster.workers.get(address);
    const isDropped = (key: string): boolean => {
      const task = context.cluster.tasks.get(key);
      return !texts.has(key) || task === undefined || worker?.hasWhat.has(task) === true;
    };
    if (moved.every(isDropped)) return;
    await pauseMs(context, LOOK_MS);
  }
}

// How tasks ended in the scheduler, with what their worker reported.

/** The end of a task: a result or a final failure. */
interface TaskOutcome {
  readonly key: string;
  readonly state: 'memory' | 'erred';
  /** The report of its worker, with `worker`. undefined: it did not run, or no worker of Dask ran it. */
  readonly report: Fields | undefined;
}

type OutcomeObserver = (outcome: TaskOutcome) => void;

/**
 * Calls observers with the end of each task. A report alone is no end: a failed task may be tried again, and a
 * worker may report a task that the scheduler has taken from it. Without observers nothing is kept.
 */
class TaskOutcomes {
  private readonly observers = new Set<OutcomeObserver>();
  /** Reports of tasks that are still `processing`, by key. */
  private readonly reports = new Map<string, Fields>();

  constructor(private readonly context: DaskContext) {}

  add(observer: OutcomeObserver): void {
    if (this.observers.size === 0) this.context.taskObservers.add(this.onReport);
    this.observers.add(observer);
  }

  delete(observer: OutcomeObserver): void {
    this.observers.delete(observer);
    if (this.observers.size > 0) return;
    this.context.taskObservers.delete(this.onReport);
    this.reports.clear();
  }

  readonly hooks: ExtensionHooks = {
    taskTransition: ({ key }, start, finish) => {
      if (this.observers.size === 0) return;
      const report = start === 'processing' ? this.reports.get(key) : undefined;
      if (report !== undefined || finish === 'forgotten') this.reports.delete(key);
      if (finish !== 'memory' && finish !== 'erred') return;
      for (const observe of this.observers) observe({ key, state: finish, report });
    },
  };

  private readonly onReport = (message: Fields, key: string, { address }: DaskWorker): void => {
    // Without what Dask does not hand to its plugins, which record what clients ask for.
    this.reports.set(key, { ...omit(message, 'op', 'key', 'run_id'), worker: address });
  };
}

/** True when it says when the task ran. */
function hasTimes(report: Fields | undefined): report is Fields {
  return (asList(report?.['startstops']) ?? []).length > 0;
}

// What clients do with tasks by request, and what they want to know of them.

/** The time for which a request waits for an unknown key, which may be on its way on the client's stream. */
const ARRIVAL_MS = 1000;

/** Entries of the task stream that are kept. */
const STREAM_MAX = 100_000;

/** Moments at which clients began to look that are kept. */
const MARKS_MAX = 100;

/** Cancelling, retrying, and collecting what happened to tasks. */
export function makeTasks(context: DaskContext): DaskExtension {
  const outcomes = new TaskOutcomes(context);
  const stream = new TaskStream(context, outcomes);
  const collectors = new Map<string, Collector[]>();
  return {
    rpc: {
      cancel: (request, context) => cancel(request, context),
      retry: (request, context) => {
        const keys = context.keys.textsOf(request['keys'] ?? []);
        const restarted = erredBehind(context, keys);
        const { client } = request;
        const isNamed = typeof client === 'string' && client !== '';
        context.plugin.enqueue({ op: 'retry', client: isNamed ? client : 'dask', keys });
        const message = { action: 'retry', count: keys.length };
        if (isNamed) context.plugin.enqueue({ op: 'log-event', topics: [client], message });
        return context.keys.wiresOf(restarted);
      },
      set_restrictions: (request, context) => {
        const changes = entriesOf(request['worker']).map(([key, places]) => {
          const workers = (asList(places) ?? [places]).map(String);
          return { key: context.keys.textOf(key), workers };
        });
        context.plugin.enqueue({ op: 'set-restrictions', changes });
        return null;
      },
      get_task_stream: (request) => stream.collect(request),
      get_task_stream_index: () => stream.index(),
      performance_report: (request, context) =>
        performanceReport(context, stream.since(numberIn(request, 'start') ?? 0), request),
      start_task_metadata: ({ name }) => {
        const same = collectors.get(String(name)) ?? [];
        collectors.set(String(name), [...same, new Collector(context, outcomes)]);
        return null;
      },
      stop_task_metadata: ({ name }) => {
        const found = collectors.get(String(name)) ?? [];
        const [only] = found;
        if (only === undefined || found.length > 1) {
          throw new PythonException(
            'ValueError',
            `Expected to find exactly one CollectTaskMetaDataPlugin with name ${String(name)} but found ${found.length}.`,
          );
        }
        collectors.delete(String(name));
        return only.stop();
      },
    },
    hooks: outcomes.hooks,
  };
}

/**
 * The failed tasks among these, and those to blame for them: what a retry starts again. A finished task keeps
 * its result; the client would wait for it to finish anew.
 * @throws PythonException `KeyError` for a key that the scheduler does not know
 */
function erredBehind({ cluster }: DaskContext, keys: readonly string[]): string[] {
  const found = new Set<string>();
  const stack = [...keys];
  for (let key = stack.pop(); key !== undefined; key = stack.pop()) {
    const task = cluster.tasks.get(key);
    if (task === undefined) throw new PythonException('KeyError', key);
    if (task.state !== 'erred' || found.has(key)) continue;
    found.add(key);
    for (const { key: input } of task.dependencies) stack.push(input);
  }
  return [...found];
}

async function cancel(request: Fields, context: DaskContext): Promise<null> {
  const { client } = request;
  const name = String(client);
  if (!context.cluster.clients.has(name)) return null; // As in Dask.
  const keys = context.keys.textsOf(request['keys'] ?? []);
  const deadlineMs = context.clock.nowMs() + ARRIVAL_MS;
  for (;;) {
    await context.graphsSettled(name);
    const isMissing = keys.some((key) => !context.cluster.tasks.has(key));
    if (!isMissing || context.clock.nowMs() >= deadlineMs) break;
    await pauseMs(context, LOOK_MS);
  }
  context.plugin.enqueue({
    op: 'cancel-keys',
    client: name,
    keys,
    force: request['force'] === true,
    ...cancellationIn(request),
  });
  return null;
}

/** The place and the time of each run, recorded from the first request on. */
class TaskStream {
  private readonly entries: Fields[] = [];
  private isOn = false;
  /** Ever recorded. */
  private count = 0;
  /** The times at which clients began to look, and the number of runs recorded until then. */
  private readonly marks: { readonly atS: number; readonly index: number }[] = [];

  constructor(
    private readonly context: DaskContext,
    private readonly outcomes: TaskOutcomes,
  ) {}

  collect(request: Fields): readonly Fields[] {
    this.begin();
    const { entries } = this;
    const index = numberIn(request, 'start_index');
    const start =
      index === undefined
        ? this.position(request['start'])
        : Math.max(0, index - (this.count - entries.length));
    const stop = this.position(request['stop']);
    if (toNumber(request['start']) === 0 && toNumber(request['stop']) === 0) this.mark();
    const count = numberIn(request, 'count');
    if (count === undefined) return entries.slice(start ?? 0, stop ?? entries.length);
    if (start !== undefined && stop === undefined) return entries.slice(start, start + count);
    const end = stop ?? entries.length;
    return entries.slice(Math.max(0, start ?? end - count), end);
  }

  /**
   * The runs recorded since a client began to look, by its clock. Performance reports ask for nothing (`start=0`,
   * `stop=0`) when they begin; that moment counts, as clocks of workers differ from that of the client.
   */
  since(startS: number): readonly Fields[] {
    const found = this.marks.find(({ atS }) => atS >= startS);
    if (found === undefined) return this.collect({ start: startS });
    return this.collect({ start_index: found.index });
  }

  private mark(): void {
    this.marks.push({ atS: this.context.nowS(), index: this.count });
    if (this.marks.length > MARKS_MAX) this.marks.shift();
  }

  /** A mark: `start_index` asks for what came after it. */
  index(): number {
    this.begin();
    return this.count;
  }

  private begin(): void {
    if (this.isOn) return;
    this.isOn = true;
    this.outcomes.add(({ key, report }) => {
      if (!hasTimes(report)) return;
      this.entries.push({ ...report, key: this.context.keys.wireOf(key) });
      this.count++;
      if (this.entries.length > 1.1 * STREAM_MAX) {
        this.entries.splice(0, this.entries.length - STREAM_MAX);
      }
    });
  }

  /**
   * The first entry that ended at this time or later: seconds since 1970, or a text that names a
   * time span before now.
   */
  private position(time: unknown): number | undefined {
    if (time === undefined || time === null) return undefined;
    const seconds =
      typeof time === 'string'
        ? this.context.nowS() - durationMs(time) / 1000
        : (toNumber(time) ?? 0);
    const found = this.entries.findIndex((entry) => stopOf(entry) >= seconds);
    return found < 0 ? this.entries.length : found;
  }
}

function stopOf(entry: Fields): number {
  let latest = 0;
  for (const part of asList(entry['startstops']) ?? []) {
    if (isFields(part)) latest = Math.max(latest, toNumber(part['stop']) ?? 0);
  }
  return latest;
}

/** Metadata and final states of the tasks that are submitted meanwhile. */
class Collector {
  private readonly wanted = new Set<string>();
  private readonly metadata = new Map<unknown, unknown>();
  private readonly states = new Map<unknown, string>();

  constructor(
    private readonly context: DaskContext,
    private readonly outcomes: TaskOutcomes,
  ) {
    outcomes.add(this.onOutcome);
    context.graphObservers.add(this.onGraph);
  }

  stop(): Fields {
    this.outcomes.delete(this.onOutcome);
    this.context.graphObservers.delete(this.onGraph);
    return { metadata: this.metadata, state: this.states };
  }

  private readonly onGraph = (_client: unknown, keys: readonly string[]): void => {
    for (const key of keys) this.wanted.add(key);
  };

  private readonly onOutcome = ({ key, state, report }: TaskOutcome): void => {
    if (!this.wanted.delete(key)) return;
    const wire = this.context.keys.wireOf(key);
    this.metadata.set(wire, report?.['metadata'] ?? null);
    this.states.set(wire, state);
  };
}
