/** What clients do with tasks by request, and what they want to know of them. */
import type { DaskContext, DaskExtension, Fields } from '../../context.ts';
import { durationMs } from '../../graph/unpacked.ts';
import { toNumber } from '../../codec/index.ts';
import { PythonException } from '../py-errors.ts';
import { cancellationIn } from '../../bridge/translate-client.ts';
import { asList, entriesOf, isFields, numberIn } from '../../codec/values.ts';
import { performanceReport } from '../../report/index.ts';
import { pauseMs } from '../workers/calls.ts';
import { hasTimes, type TaskOutcome, TaskOutcomes } from './task-outcomes.ts';

/** How long a request waits for an unknown key, which may be on its way on the client's stream. */
const ARRIVAL_MS = 1000;
const LOOK_MS = 20;

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
        context.plugin.enqueue({ op: 'retry', client: String(request['client']), keys });
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

/** Where and when each task ran, recorded from the first request on. */
class TaskStream {
  private readonly entries: Fields[] = [];
  private isOn = false;
  /** Ever recorded. */
  private count = 0;
  /** When clients began to look, and what had been recorded until then. */
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
   * What was recorded since a client began to look, by its clock. Performance reports ask for nothing (`start=0`,
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
