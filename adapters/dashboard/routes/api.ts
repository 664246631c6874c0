import type { FastifyInstance, FastifyRequest } from 'fastify';

import { type PluginContext, type SlotName, YardmasterError } from '../../../core/api/index.ts';
import { graphOf } from './graph.ts';
import { largestResults } from './largest-results.ts';

/** Keys of neighbours that are listed. */
const NEIGHBOURS_MAX = 20;

/** Tasks of a worker that are listed. */
const TASKS_MAX = 100;

/** Lines and transitions in one answer. */
const LINES_MAX = 200;

/** Built-in policies by slot, to choose from. */
const POLICIES: Readonly<Record<SlotName, readonly string[]>> = {
  workerSelection: ['earliest-start', 'balanced', 'locality-first'],
  queuing: ['root-ish', 'co-assign', 'family', 'direct', 'mars'],
  ordering: ['depth-first', 'dask', 'mars', 'fifo', 'best'],
  fairness: ['fifo', 'weighted-fair-share'],
  stealing: ['dask', 'calm'],
};

interface Transition {
  readonly key: string;
  readonly start: string;
  readonly finish: string;
  readonly stimulusId: string;
  readonly atMs: number;
}

/** The scheduler that pages ask about: a live one, or one of the past at a moment. */
export type ApiSource = Pick<PluginContext, 'cluster' | 'run'>;

/**
 * Adds what the pages ask for now and then, beside the feed.
 * @param sourceOf - the scheduler that a request is about
 */
export function addApi(
  app: FastifyInstance,
  sourceOf: (request: FastifyRequest) => ApiSource | Promise<ApiSource>,
): void {
  const answer = (path: string, of: (source: ApiSource, request: FastifyRequest) => unknown) =>
    app.get(path, async (request) => of(await sourceOf(request), request));
  answer('/api/task', (source, request) => taskOf(source, textIn(request, 'key')));
  answer('/api/graph', ({ cluster }) => graphOf(cluster));
  answer('/api/memory', (source) => ({
    ...largestResults(source.cluster),
    replicated: source.cluster.replicated.size,
    amm: orNull(() => source.run('amm.status')),
  }));
  answer('/api/policies', (source) => policiesOf(source));
  answer('/api/worker', (source, request) => workerOf(source, textIn(request, 'worker')));
  answer('/api/stacks', (source, request) =>
    source.run('call-stacks', { workers: [textIn(request, 'worker')] }),
  );
  answer('/api/logs', (source, request) =>
    source.run('logs', { workers: [textIn(request, 'worker')], count: LINES_MAX }),
  );
  answer('/api/log', (source, request) => logOf(source, request));
}

/** @throws YardmasterError `ERR_PROTOCOL` when it is missing */
export function textIn(
  request: FastifyRequest,
  name: string,
  source: unknown = request.query,
): string {
  const value = (source as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new YardmasterError('ERR_PROTOCOL', `${request.url} needs ${name}, a text`, { name });
}

function taskOf(context: ApiSource, key: string): object {
  const why = context.run('why', { key });
  const task = context.cluster.tasks.get(key);
  if (task === undefined) return { why, task: null };
  const { nbytes, type = null, failure, dependencies, dependents } = task;
  const keys = (tasks: typeof dependencies): readonly string[] =>
    tasks.slice(0, NEIGHBOURS_MAX).map((one) => one.key);
  const error = failure?.exceptionText ?? null;
  return {
    why,
    task: { nbytes, type, error, dependencies: keys(dependencies), dependents: keys(dependents) },
  };
}

function policiesOf(context: ApiSource): object {
  const policies = context.run('policies') as Readonly<Record<SlotName, string>>;
  const shadows = (Object.keys(policies) as SlotName[]).flatMap((slot) => {
    const report = orNull(() => context.run('shadow', { slot }));
    return report === null || report === undefined ? [] : [report];
  });
  return { policies, shadows, known: POLICIES };
}

function workerOf({ cluster }: ApiSource, address: string): object {
  const worker = cluster.workers.get(address);
  if (worker === undefined) {
    throw new YardmasterError('ERR_NO_WORKER', `there is no worker ${address} any more`, {
      worker: address,
    });
  }
  const { name, host, status, language, resources, processing, hasWhat, nbytes } = worker;
  return {
    ...{ address, name, host, status, language, nbytes },
    resources: [...resources],
    processing: firstOf(processing, TASKS_MAX).map(({ key }) => key),
    processingCount: processing.size,
    results: hasWhat.size,
  };
}

async function logOf(context: ApiSource, request: FastifyRequest): Promise<object> {
  const { filter = '', level = 'info' } = request.query as { filter?: string; level?: string };
  const keys = filter === '' ? {} : { keys: [filter] };
  const story = context.run('story', keys) as readonly Transition[];
  const asked = { workers: [], count: LINES_MAX, level };
  const { scheduler } = (await context.run('logs', asked)) as { scheduler: readonly object[] };
  return {
    lines: scheduler.toReversed(),
    story: story.slice(-LINES_MAX).toReversed(),
  };
}

/** What a plugin that may not be there answers. */
function orNull(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    if (YardmasterError.is(error)) return null;
    throw error;
  }
}

function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const found: T[] = [];
  for (const item of items) {
    if (found.length === count) break;
    found.push(item);
  }
  return found;
}
