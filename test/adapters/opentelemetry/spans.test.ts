import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { startCluster } from '../dashboard/bench.ts';
import { add, fail, spin } from '../dashboard/fixtures/tasks.mjs';

describe('the spans of a cluster with the plugin opentelemetry', () => {
  const exporter = new InMemorySpanExporter();
  let cluster: LocalCluster;
  let client: Client;

  beforeAll(async () => {
    const provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    });
    trace.setGlobalTracerProvider(provider);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const plugins = [{ use: 'opentelemetry' }];
    ({ cluster } = await startCluster({}, { config: { scheduler: { plugins } } }));
    client = await cluster.client();
  });
  afterAll(async () => {
    await cluster.close();
    trace.disable();
    context.disable();
  });
  beforeEach(() => exporter.reset());

  const named = (name: string): ReadableSpan => {
    const found = exporter.getFinishedSpans().filter((span) => span.name === name);
    expect(found.length, name).toBe(1);
    return found[0]!;
  };
  const below = (parent: ReadableSpan): string[] =>
    exporter
      .getFinishedSpans()
      .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent.spanContext().spanId)
      .map(({ name }) => name)
      .toSorted();

  it('follow a graph from the span of its submitter to the run of each task', async () => {
    const tracer = trace.getTracer('test');
    await tracer.startActiveSpan('request', async (span) => {
      const load = client.with({ key: 'load-1' }).submit(spin, 5);
      const sum = client.with({ key: 'sum-1' }).submit(add, [load]);
      expect(await sum.result()).toBe(5);
      span.end();
    });
    const request = named('request');
    const { traceId } = request.spanContext();
    for (const span of exporter.getFinishedSpans())
      expect(span.spanContext().traceId).toBe(traceId);
    expect(new Set(below(request))).toEqual(new Set(['submit']));
    const [load, sum] = [named('load'), named('sum')];
    expect(below(load)).toContain('run');
    expect(load.attributes).toMatchObject({
      'yardmaster.task.key': 'load-1',
      'yardmaster.task.state': 'memory',
    });
    expect(load.attributes['yardmaster.worker']).toMatch(/^inmemory:/);
    expect(sum.links.map((link) => link.context.spanId)).toEqual([load.spanContext().spanId]);
    const run = exporter.getFinishedSpans().find(({ name }) => name === 'run')!;
    expect(run.duration[0] * 1e3 + run.duration[1] / 1e6).toBeGreaterThanOrEqual(4.9);
  });

  it('keep apart what was submitted within different spans at the same time', async () => {
    const tracer = trace.getTracer('test');
    const keys = ['one', 'two'];
    const futures = keys.map((name) =>
      tracer.startActiveSpan(name, (span) => {
        const future = client.with({ key: `${name}-task-1` }).submit(spin, 1);
        span.end();
        return future;
      }),
    );
    await client.gather(futures);
    for (const name of keys) {
      const { traceId } = named(name).spanContext();
      expect(named(`${name}-task`).spanContext().traceId).toBe(traceId);
    }
  });

  it('say which task failed', async () => {
    await client.with({ key: 'parse-1' }).submit(fail, 'no date').settled();
    const parse = named('parse');
    expect(parse.status.code).toBe(SpanStatusCode.ERROR);
    expect(parse.status.message).toContain('no date');
    expect(parse.parentSpanContext?.spanId).toBe(named('submit').spanContext().spanId);
  });

  it('end when a task is given up before it ran', async () => {
    const never = client.with({ key: 'gpu-1', resources: { GPU: 1 } }).submit(spin, 1);
    await expect.poll(() => cluster.scheduler.cluster.tasks.get('gpu-1')?.state).toBe('no-worker');
    never.cancel();
    await expect.poll(() => exporter.getFinishedSpans().map(({ name }) => name)).toContain('gpu');
    expect(below(named('gpu'))).toContain('queue');
    expect(named('gpu').attributes['yardmaster.task.state']).toBe('released');
  });
});
