import type * as OpenTelemetry from '@opentelemetry/api';
import type { Context, Span, SpanContext, Tracer } from '@opentelemetry/api';
import {
  type ActionTiming,
  BRIDGE,
  type Clock,
  definePlugin,
  type GraphUpdate,
  type HookTable,
  type TaskStateName,
  type TaskView,
  type TransitionDetails,
  VERSION,
  YardmasterError,
} from '../../core/api/index.ts';

/**
 * Spans of OpenTelemetry for graphs and tasks: waiting, queue, transfers, run. They go to the provider that the program has
 * registered; without one they cost next to nothing. Needs the package `@opentelemetry/api`.
 */
export default definePlugin({
  name: 'opentelemetry',
  apiVersion: 1,
  optionsSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup(context) {
    let spans: TaskSpans | undefined;
    return {
      start: async () => {
        spans = new TaskSpans(await loadApi(), VERSION, context.clock);
        context.get(BRIDGE).observe(spans.hooks);
      },
      close: () => spans?.close(),
    };
  },
});

async function loadApi(): Promise<Api> {
  try {
    return await import('@opentelemetry/api');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      'the plugin "opentelemetry" needs the package @opentelemetry/api, which cannot be loaded; install it beside yardmaster',
      { plugin: 'opentelemetry' },
      { cause },
    );
  }
}

/** The module, which is loaded when the plugin starts. */
export type Api = typeof OpenTelemetry;

/** A task that has not come to an end. */
interface Open {
  readonly span: Span;
  /** The context in which its parts are. */
  readonly context: Context;
  /** The present part of the span: the task waits for inputs, or for a worker. */
  part: Span | undefined;
}

/** Names of the spans of what a worker did; other actions keep theirs. */
const PARTS: Readonly<Record<string, string>> = { compute: 'run' };

/** `00-TRACE-SPAN-FLAGS` of the W3C. */
const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;

/**
 * Turns transitions into spans: `submit` for a graph, below it one for each task with its prefix as name, and below that
 * `wait` for inputs, `queue` for a worker, `transfer` and `run`. A task is linked to those whose results it needed.
 */
export class TaskSpans {
  private readonly tracer: Tracer;
  private readonly open = new Map<string, Open>();
  /** Of tasks that the scheduler knows, for links. */
  private readonly contexts = new Map<string, SpanContext>();

  constructor(
    private readonly api: Api,
    version: string,
    private readonly clock: Clock,
  ) {
    this.tracer = api.trace.getTracer('yardmaster', version);
  }

  readonly hooks: HookTable = {
    graphUpdated: (update) => this.onGraph(update),
    taskTransition: (task, start, finish, _stimulusId, details) =>
      this.onTransition(task, start, finish, details),
    restarted: () => this.close(),
  };

  /** Ends what is open. */
  close(): void {
    for (const { span, part } of this.open.values()) {
      part?.end(this.clock.nowMs());
      span.end(this.clock.nowMs());
    }
    this.open.clear();
    this.contexts.clear();
  }

  /** A graph can have tasks that were submitted within several spans. O(tasks of the graph). */
  private onGraph({ client, tasks }: GraphUpdate): void {
    const nowMs = this.clock.nowMs();
    const attributes = { 'yardmaster.client': client };
    const submits = new Map<unknown, { span: Span; context: Context; tasks: number }>();
    for (const task of tasks) {
      if (task.state !== 'released' || this.open.has(task.key)) continue;
      const given = task.annotations?.['traceparent'];
      let submit = submits.get(given);
      if (submit === undefined) {
        const parent = this.contextOf(given);
        const span = this.tracer.startSpan('submit', { attributes, startTime: nowMs }, parent);
        submit = { span, context: this.api.trace.setSpan(parent, span), tasks: 0 };
        submits.set(given, submit);
      }
      this.begin(task, submit.context, nowMs);
      submit.tasks++;
    }
    for (const { span, tasks: count } of submits.values()) {
      span.setAttribute('yardmaster.tasks', count);
      span.end(nowMs);
    }
  }

  /** The span within which the client was, which comes as an annotation of the tasks. */
  private contextOf(given: unknown): Context {
    const { ROOT_CONTEXT, trace } = this.api;
    const parts = typeof given === 'string' ? TRACEPARENT.exec(given) : null;
    if (parts === null) return ROOT_CONTEXT;
    const [, traceId = '', spanId = '', flags = ''] = parts;
    const traceFlags = parseInt(flags, 16);
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  }

  private begin({ key, group, prefix }: TaskView, parent: Context, nowMs: number): Open {
    const attributes = { 'yardmaster.task.key': key, 'yardmaster.task.group': group.name };
    const span = this.tracer.startSpan(prefix.name, { attributes, startTime: nowMs }, parent);
    const context = this.api.trace.setSpan(parent, span);
    const open: Open = { span, context, part: undefined };
    this.open.set(key, open);
    this.contexts.set(key, span.spanContext());
    return open;
  }

  private onTransition(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    details: TransitionDetails,
  ): void {
    if (start === finish) return;
    const { key } = task;
    if (finish === 'forgotten') {
      this.end(key, 'released');
      this.contexts.delete(key);
      return;
    }
    let open = this.open.get(key);
    if (open === undefined) {
      if (finish !== 'waiting' || start === 'forgotten') return;
      // Its result was lost, or it is tried again.
      open = this.begin(task, this.api.ROOT_CONTEXT, this.clock.nowMs());
    }
    if (!open.span.isRecording()) return;
    if (start === 'processing') this.onEndOfRun(task, open, finish, details);
    else if (finish === 'memory' || finish === 'erred') this.end(key, finish);
    else this.onWay(task, open, finish);
  }

  /** Before it is on a worker. */
  private onWay(task: TaskView, open: Open, finish: TaskStateName): void {
    const nowMs = this.clock.nowMs();
    open.part?.end(nowMs);
    open.part = undefined;
    if (finish === 'waiting') open.part = this.part(open, 'wait', nowMs);
    if (finish === 'queued' || finish === 'no-worker') open.part = this.part(open, 'queue', nowMs);
    if (finish !== 'processing') return;
    const worker = task.processingOn?.address ?? '';
    open.span.addEvent('assigned', { 'yardmaster.worker': worker }, nowMs);
    for (const { key } of task.dependencies) {
      const context = this.contexts.get(key);
      if (context !== undefined)
        open.span.addLink({ context, attributes: { 'yardmaster.input': key } });
    }
  }

  private onEndOfRun(
    { key }: TaskView,
    open: Open,
    finish: TaskStateName,
    { worker = '', timings = [], nbytes, failure }: TransitionDetails,
  ): void {
    for (const timing of timings) this.addTiming(open, timing, worker);
    const { span } = open;
    if (finish !== 'memory' && finish !== 'erred') {
      span.addEvent('taken back', { 'yardmaster.worker': worker }, this.clock.nowMs());
      return;
    }
    span.setAttribute('yardmaster.worker', worker);
    if (nbytes !== undefined) span.setAttribute('yardmaster.result.bytes', nbytes);
    if (finish === 'erred') {
      const message = failure?.exceptionText ?? '';
      span.recordException({ message }, this.clock.nowMs());
      span.setStatus({ code: this.api.SpanStatusCode.ERROR, message });
    }
    this.end(key, finish);
  }

  private addTiming(
    { context }: Open,
    { action, startS, stopS }: ActionTiming,
    worker: string,
  ): void {
    const attributes = { 'yardmaster.worker': worker };
    const startTime = startS * 1000;
    const name = PARTS[action] ?? action;
    this.tracer.startSpan(name, { attributes, startTime }, context).end(stopS * 1000);
  }

  private part({ context }: Open, name: string, startTime: number): Span {
    return this.tracer.startSpan(name, { startTime }, context);
  }

  private end(key: string, state: string): void {
    const open = this.open.get(key);
    if (open === undefined) return;
    this.open.delete(key);
    const nowMs = this.clock.nowMs();
    open.part?.end(nowMs);
    open.span.setAttribute('yardmaster.task.state', state);
    open.span.end(nowMs);
  }
}
