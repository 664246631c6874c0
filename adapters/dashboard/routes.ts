import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  BUILTIN_POLICIES,
  type ClusterView,
  type PluginContext,
  type ShadowReport,
  SLOT_NAMES,
  type SlotName,
  type TaskView,
  type Why,
  YardmasterError,
} from '../../core/api/index.ts';
import type { Access, Need } from './access.ts';
import { asset } from './asset.ts';
import type { Viewer, ViewerSocket } from './feed.ts';
import { orNull, tasksByState } from './metrics.ts';
import type {
  GraphAnswer,
  HeldResult,
  LogAnswer,
  MemoryAnswer,
  PoliciesAnswer,
  TaskAnswer,
  WorkerAnswer,
} from './page-messages.ts';
import { pagePaths, plotsForJupyter } from './paths.ts';
import { escapeText } from '../../core/util/values.ts';

/** Keys of neighbours that are listed. */
const NEIGHBOURS_MAX = 20;

/** Tasks of a worker that are listed. */
const TASKS_MAX = 100;

/** Lines and transitions in one answer. */
const LINES_MAX = 200;

/** Milliseconds for which an answer is given again. */
const KEPT_MS = 250;

/** Answers that are kept at the same time, and their bytes together. */
const KEPT_MAX = 100;
const KEPT_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Answers of the last moments, each as it was sent. Many readers of one address cost the thread of the scheduler as much as one:
 * equal requests get the same answer for {@link KEPT_MS} after it was made, and wait together for one that is being made. Errors are
 * not kept.
 */
export class Answers {
  private readonly made = new Map<string, Promise<Buffer>>();
  private nbytes = 0;

  /**
   * Sends the answer to a request, made anew or kept.
   * @param parameters - those that the answer depends on; an address with others has the same answer
   * @param make - called unless the same was asked a moment ago; its text is what is sent
   */
  async send(
    { routeOptions: { url = '' } }: FastifyRequest,
    reply: FastifyReply,
    type: string,
    make: () => string | Promise<string>,
    parameters: Parameters = {},
  ): Promise<FastifyReply> {
    const key = JSON.stringify([url, parameters]);
    const answer = await (this.made.get(key) ?? this.add(key, make));
    return reply.type(type).send(answer);
  }

  /** Everything is made anew from now on, also what is being made. */
  clear(): void {
    this.made.clear();
    this.nbytes = 0;
  }

  private add(key: string, make: () => string | Promise<string>): Promise<Buffer> {
    const answer = Promise.resolve()
      .then(make)
      .then((text) => Buffer.from(text));
    this.made.set(key, answer);
    const remove = (nbytes: number): void => {
      if (this.made.get(key) !== answer) return;
      this.made.delete(key);
      this.nbytes -= nbytes;
    };
    void answer.then(
      ({ byteLength }) => {
        if (this.made.get(key) !== answer) return;
        this.nbytes += byteLength;
        if (this.made.size > KEPT_MAX || this.nbytes > KEPT_BYTES_MAX) remove(byteLength);
        else setTimeout(() => remove(byteLength), KEPT_MS).unref();
      },
      () => remove(0),
    );
    return answer;
  }
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** The values of the parameters that an answer depends on. One that is not given is ''. */
type Parameters<Name extends string = string> = Readonly<Record<Name, string>>;

/** Adds a path whose answer is plain data, and kept for a moment. */
export function addData<Name extends string = never>(
  app: FastifyInstance,
  answers: Answers,
  path: string,
  of: (parameters: Parameters<Name>, request: FastifyRequest) => unknown,
  { names = [], need = 'read' }: { names?: readonly Name[]; need?: Need } = {},
): void {
  app.get(path, { config: { need } }, (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>;
    const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
    const pairs = names.map((name) => [name, textOf(query[name])]);
    const parameters = Object.fromEntries(pairs) as Parameters<Name>;
    const make = async () => JSON.stringify((await of(parameters, request)) ?? null);
    return answers.send(request, reply, JSON_TYPE, make, parameters);
  });
}

/** The scheduler that pages ask about: a live one, or one of the past at a moment. */
export type ApiSource = Pick<PluginContext, 'cluster' | 'run'>;

/**
 * Adds what the pages ask for now and then, beside the feed.
 * @param sourceOf - the scheduler that a request is about, and whether its decisions are asked for; `at` is the moment of a past one
 */
export function addApi(
  app: FastifyInstance,
  answers: Answers,
  sourceOf: (at: string, isExplained: boolean) => ApiSource | Promise<ApiSource>,
): void {
  const answer = <Name extends string = never>(
    path: string,
    names: readonly Name[],
    of: (source: ApiSource, parameters: Parameters<Name>) => unknown,
  ) =>
    addData(
      app,
      answers,
      path,
      async (parameters) =>
        of(await sourceOf(parameters.at, path === '/api/task'), parameters as Parameters<Name>),
      { names: [...names, 'at'] as const },
    );
  answer('/api/task', ['key'], (source, { key }) => taskOf(source, given('key', key)));
  answer('/api/graph', ['name'], ({ cluster }, { name }) => graphOf(cluster, name));
  answer('/api/memory', [], (source) => memoryOf(source));
  answer('/api/policies', [], (source) => policiesOf(source));
  answer('/api/worker', ['worker'], (source, { worker }) => workerOf(source, worker));
  answer('/api/stacks', ['worker', 'key'], (source, { worker, key }) =>
    source.run(
      'call-stacks',
      key === '' ? { workers: [given('worker', worker)] } : { keys: [key] },
    ),
  );
  answer('/api/why-slow', [], (source) => source.run('report.explain'));
  answer('/api/logs', ['worker'], (source, { worker }) =>
    source.run('logs', { workers: [given('worker', worker)], count: LINES_MAX }),
  );
  answer('/api/log', ['filter', 'level'], logOf);
}

/** @throws YardmasterError `ERR_PROTOCOL` when it is missing */
function given(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new YardmasterError('ERR_PROTOCOL', `the request needs ${name}, a text`, { name });
}

function taskOf(context: ApiSource, key: string): TaskAnswer {
  const why = context.run('why', { key }) as Why;
  const task = context.cluster.tasks.get(key);
  if (task === undefined) return { why, task: null };
  const { nbytes, type = null, failure, dependencies, dependents, exceptionBlame: blame } = task;
  const keys = (tasks: typeof dependencies): readonly string[] =>
    tasks.slice(0, NEIGHBOURS_MAX).map((one) => one.key);
  const { exceptionText = '', tracebackText = '' } = failure ?? {};
  // The stack of JavaScript begins with the message.
  const text = tracebackText.includes(exceptionText)
    ? tracebackText
    : `${exceptionText}\n${tracebackText}`;
  const error = failure === undefined ? null : text.trim();
  const cause = blame === undefined || blame.key === key ? null : blame.key;
  return {
    why,
    task: {
      ...{ nbytes, type, error, cause, workers: [...task.erredOn] },
      ...{ dependencies: keys(dependencies), dependents: keys(dependents) },
    },
  };
}

function policiesOf(context: ApiSource): PoliciesAnswer {
  const policies = context.run('policies') as Readonly<Record<SlotName, string>>;
  const shadows = SLOT_NAMES.flatMap((slot) => {
    const report = orNull(() => context.run('shadow', { slot }));
    return report === null || report === undefined ? [] : [report as ShadowReport];
  });
  return { policies, shadows, known: BUILTIN_POLICIES };
}

function workerOf({ cluster }: ApiSource, address: string): WorkerAnswer {
  const worker = cluster.workers.get(given('worker', address));
  if (worker === undefined) {
    throw new YardmasterError('ERR_NO_WORKER', `there is no worker ${address} any more`, {
      worker: address,
    });
  }
  const { name, host, status, language, resources, processing, executing, hasWhat, nbytes } =
    worker;
  return {
    ...{ address, name, host, status, language, nbytes },
    resources: [...resources],
    processing: firstOf(processing, TASKS_MAX).map((task) => [task.key, executing.get(task) ?? -1]),
    processingCount: processing.size,
    results: hasWhat.size,
  };
}

async function logOf(
  context: ApiSource,
  { filter, level }: Parameters<'filter' | 'level'>,
): Promise<LogAnswer> {
  const keys = filter === '' ? {} : { keys: [filter] };
  const story = context.run('story', keys) as LogAnswer['story'];
  const asked = { workers: [], count: LINES_MAX, level: level || 'info' };
  const { scheduler } = (await context.run('logs', asked)) as { scheduler: LogAnswer['lines'] };
  return {
    lines: scheduler.toReversed(),
    story: story.slice(-LINES_MAX).toReversed(),
  };
}

function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const found: T[] = [];
  for (const item of items) {
    if (found.length === count) break;
    found.push(item);
  }
  return found;
}

function textIn({ body }: FastifyRequest, name: string): string {
  return given(name, (body as Readonly<Record<string, unknown>> | null | undefined)?.[name]);
}

/** Adds what changes the cluster. Each is a POST that carries the token of a page, and empties the answers. */
export function addChanges(app: FastifyInstance, answers: Answers, context: PluginContext): void {
  const change = (path: string, make: (request: FastifyRequest) => unknown): void => {
    app.post(path, { config: { need: 'change' } }, async (request) => {
      try {
        return await make(request);
      } finally {
        answers.clear();
      }
    });
  };
  change('/api/policy', async (request) => {
    const slot = textIn(request, 'slot');
    const { use } = request.body as { use?: unknown };
    if (use === undefined) await context.run('restore-policy', { slot });
    else await context.run('replace-policy', { slot, use });
    context.log.warn({ slot, use }, `the dashboard changed the policy of ${slot}`);
    return {};
  });
  change('/api/shadow', async (request) => {
    const slot = textIn(request, 'slot');
    const use = textIn(request, 'use');
    await context.run('start-shadow', { slot, use });
    return {};
  });
  change('/api/record', (request) => {
    const { keep } = (request.body ?? {}) as { keep?: unknown };
    context.run('record-decisions', { keep });
    return {};
  });
  change('/api/retire', (request) => {
    const worker = knownWorker(context, textIn(request, 'worker'));
    context.log.warn({ worker }, `the dashboard retires the worker ${worker}`);
    const retired = Promise.resolve(context.run('amm.retireWorkers', { names: [worker] }));
    retired.catch((error: unknown) => {
      context.log.warn({ err: error, worker }, 'a worker could not be retired');
    });
    return {};
  });
  change('/api/restart', (request) => {
    const worker = knownWorker(context, textIn(request, 'worker'));
    context.log.warn({ worker }, `the dashboard restarts the worker ${worker}`);
    return context.run('restart-workers', { workers: [worker], wait: false });
  });
}

function knownWorker({ cluster }: PluginContext, address: string): string {
  if (cluster.workers.has(address)) return address;
  throw new YardmasterError('ERR_NO_WORKER', `there is no worker ${address} any more`, {
    worker: address,
  });
}

/** The feed of open pages. */
export interface PageFeed {
  open(socket: ViewerSocket): Viewer;
  /** Handles a message of a page. */
  receive(viewer: Viewer, text: string): void;
  /** A page was closed. */
  leave(viewer: Viewer): void;
}

/** Adds the WebSocket of the pages. */
export function addFeed(app: FastifyInstance, feed: PageFeed): void {
  app.get('/feed', { websocket: true }, (socket) => {
    const viewer = feed.open({
      send: (text) => socket.send(text, { binary: false }),
      terminate: () => socket.terminate(),
    });
    socket.on('message', (data: Buffer) => feed.receive(viewer, data.toString()));
    socket.on('close', () => feed.leave(viewer));
    // A broken connection closes right after.
    socket.on('error', () => feed.leave(viewer));
  });
}

/** Graphs of more tasks are drawn by groups or prefixes. */
const GRAPH_TASKS_MAX = 500;

/** Tasks of one group or prefix that are drawn, with their neighbours, and those that are looked at to find them. */
const OPENED_MAX = 300;
const OPENED_FROM = 200_000;

/** Groups that are drawn; beyond that, prefixes are. */
const GROUPS_MAX = 60;

/**
 * The graph, grouped when it has too many tasks to be drawn.
 * @param name - the group or prefix whose tasks are wanted one by one; '': all
 */
function graphOf(cluster: ClusterView, name: string): GraphAnswer {
  const total = cluster.tasks.size;
  if (name !== '') return { kind: 'tasks', total, ...tasksOf(tasksNamed(cluster, name)) };
  if (total <= GRAPH_TASKS_MAX) return { kind: 'tasks', total, ...tasksOf(cluster.tasks.values()) };
  const isFine = cluster.groups.size <= GROUPS_MAX;
  return { kind: isFine ? 'groups' : 'prefixes', total, ...groupsOf(cluster, isFine) };
}

/** The first tasks of a group or prefix, with what they need and what needs them. */
function tasksNamed({ tasks }: ClusterView, name: string): Iterable<TaskView> {
  const found = new Set<TaskView>();
  let looked = 0;
  for (const task of tasks.values()) {
    if (looked++ >= OPENED_FROM || found.size >= OPENED_MAX) break;
    if (task.group.name !== name && task.prefix.name !== name) continue;
    found.add(task);
    for (const other of [...task.dependencies, ...task.dependents].slice(0, NEIGHBOURS_MAX))
      found.add(other);
  }
  return found;
}

function tasksOf(tasks: Iterable<TaskView>): Pick<GraphAnswer, 'nodes' | 'edges'> {
  const all = [...tasks];
  const numbers = new Map(all.map(({ key }, number) => [key, number]));
  const nodes = all.map(({ key, state }) => ({ name: key, states: { [state]: 1 } }));
  const edges = all.flatMap(({ dependencies }, to) =>
    dependencies.flatMap(({ key }) => {
      const from = numbers.get(key);
      return from === undefined ? [] : [{ from, to }];
    }),
  );
  return { nodes, edges };
}

/** O(groups and their dependencies). */
function groupsOf({ groups }: ClusterView, isFine: boolean): Pick<GraphAnswer, 'nodes' | 'edges'> {
  const nodes: { readonly name: string; readonly states: Record<string, number> }[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    const known = numbers.get(name);
    if (known !== undefined) return known;
    numbers.set(name, nodes.length);
    return nodes.push({ name, states: {} }) - 1;
  };
  const edges = new Map<string, { readonly from: number; readonly to: number }>();
  for (const group of groups.values()) {
    const nameOf = ({ name, prefix }: typeof group): string => (isFine ? name : prefix.name);
    const to = numberOf(nameOf(group));
    const states = nodes[to]?.states ?? {};
    for (const [state, count] of Object.entries(group.states)) {
      if (count > 0 && state !== 'forgotten') states[state] = (states[state] ?? 0) + count;
    }
    for (const dependency of group.dependencies) {
      const from = numberOf(nameOf(dependency));
      if (from !== to) edges.set(`${from} ${to}`, { from, to });
    }
  }
  return { nodes, edges: [...edges.values()] };
}

/** Results that are listed. */
const LISTED = 30;

/** Results that are looked at; more would hold the scheduler up. */
const LOOKED_AT = 20_000;

function memoryOf(source: ApiSource): MemoryAnswer {
  return {
    ...largestResults(source.cluster),
    replicated: source.cluster.replicated.size,
    amm: orNull(() => source.run('amm.status')) as MemoryAnswer['amm'],
  };
}

/** O(results), at most twenty thousand of them, taken evenly from all workers. */
function largestResults({
  workers,
}: ClusterView): Pick<MemoryAnswer, 'results' | 'heldBytes' | 'isPart'> {
  const each = Math.ceil(LOOKED_AT / Math.max(1, workers.size));
  const found = new Map<string, HeldResult>();
  const held = new Map<string, number>();
  let isPart = false;
  let least = 0;
  for (const worker of workers.values()) {
    let looked = 0;
    for (const { key, nbytes, whoHas, prefix } of worker.hasWhat) {
      if (looked++ === each) {
        isPart = true;
        break;
      }
      if (whoHas.items[0] === worker)
        held.set(prefix.name, (held.get(prefix.name) ?? 0) + Math.max(0, nbytes));
      if (nbytes < least || found.has(key)) continue;
      found.set(key, { key, nbytes, workers: whoHas.items.map(({ address }) => address) });
      if (found.size > 4 * LISTED) least = shrink(found);
    }
  }
  shrink(found);
  return { results: [...found.values()], heldBytes: Object.fromEntries(held), isPart };
}

/** Keeps the largest. @returns the size of the smallest that is kept */
function shrink(found: Map<string, HeldResult>): number {
  const kept = [...found.values()].toSorted((a, b) => b.nbytes - a.nbytes).slice(0, LISTED);
  found.clear();
  for (const result of kept) found.set(result.key, result);
  return kept.length < LISTED ? 0 : (kept.at(-1)?.nbytes ?? 0);
}

/**
 * Paths of Dask's pages about one worker or task, and those in folders, with the page that they lead to. Relative, because a
 * proxy may put the dashboard below another path; the pages themselves have one level for the same reason.
 */
const REDIRECTS: readonly (readonly [from: string, to: (name: string) => string])[] = [
  ['/json/index.html', () => 'identity.json'],
  ['/info', () => 'workers'],
  ['/info/main/workers.html', () => '../../workers'],
  ['/info/main/exceptions.html', () => '../../status'],
  ['/info/main/logs.html', () => '../../log'],
  ['/info/worker/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/logs/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/call-stacks/*', (worker) => `../../workers?worker=${worker}`],
  ['/info/task/*', (key) => `../../status?task=${key}`],
  ['/info/call-stack/*', (key) => `../../status?task=${key}`],
];

/**
 * Adds the pages for people.
 * @param past - what the pages have to know when they show a scheduler that is gone; undefined: a live one
 */
export async function addPages(
  app: FastifyInstance,
  answers: Answers,
  cluster: ClusterView,
  access: Access,
  past?: object,
): Promise<void> {
  const [page, script, style] = await Promise.all(['index.html', 'app.js', 'app.css'].map(asset));
  const figures = { config: { need: 'figures' } } as const;
  const html = 'text/html; charset=utf-8';
  for (const path of pagePaths()) {
    app.get(path, figures, (request, reply) => {
      const { headers, query, url } = request;
      const [at = '/', rest] = url.split('?');
      if (at.length > 1 && at.endsWith('/')) {
        return reply.redirect(`..${path}${rest === undefined ? '' : `?${rest}`}`);
      }
      const refusal = access.refusal('read', headers, query as { token?: unknown });
      if (page === undefined || refusal !== undefined) {
        const note = refusal?.text ?? 'The pages of the dashboard were not built.';
        return answers.send(request, reply, html, () => plainPage(cluster, note));
      }
      return reply
        .type(html)
        .send(
          page
            .replace('CHANGE_TOKEN', () =>
              access.changeTokenFor(headers, query as { token?: unknown }),
            )
            .replace('PAST', () => (past === undefined ? '' : escapeText(JSON.stringify(past)))),
        );
    });
  }
  for (const [from, to] of REDIRECTS) {
    app.get(from, figures, ({ params, url }, reply) => {
      const { '*': name = '' } = params as { '*'?: string };
      const up = /\/(?:\?|$)/.test(url) ? '../' : '';
      return reply.redirect(up + to(encodeURIComponent(name.replace(/\.html$/, ''))));
    });
  }
  app.get('/individual-plots.json', figures, () => plotsForJupyter());
  app.get('/sitemap.json', figures, () => ({ paths: pagePaths() }));
  const open = { config: { need: 'nothing' } } as const;
  app.get('/assets/app.js', open, (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(script ?? ''),
  );
  app.get('/assets/app.css', open, (_request, reply) =>
    reply.type('text/css; charset=utf-8').send(style ?? ''),
  );
}

/** Figures of the cluster as a page without scripts, keys of tasks and means to change anything. */
function plainPage(cluster: ClusterView, note: string): string {
  const states = [...tasksByState(cluster)].filter(([, count]) => count > 0);
  const workers = [...cluster.workers.values()].map(
    ({ name, address, status, threadCount, processing, hasWhat, nbytes, metrics }) => [
      ...[name, address, status, threadCount, processing.size, hasWhat.size, nbytes],
      metrics.memoryBytes,
    ],
  );
  const titles = ['name', 'address', 'status', 'threads', 'processing', 'results', 'bytes'];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Yardmaster</title></head>
<body><h1>Yardmaster</h1><p>${escapeText(note)}</p>
${table(['state', 'tasks'], states)}
${table([...titles, 'memory'], workers)}
</body></html>
`;
}

function table(titles: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const head = titles.map((title) => `<th>${escapeText(title)}</th>`).join('');
  const body = rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escapeText(String(cell))}</td>`).join('')}</tr>`)
    .join('\n');
  return `<table><tr>${head}</tr>\n${body}</table>`;
}
