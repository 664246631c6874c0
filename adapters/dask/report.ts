import { createHash } from 'node:crypto';
import { type CallTree, prefixOfKey, VERSION } from '../../core/api/index.ts';
import { countOf, escapeText } from '../../core/util/values.ts';
import { asset } from '../dashboard/asset.ts';
import { bytes, count, seconds } from '../dashboard/page/format.ts';
import { pruned } from '../dashboard/profile.ts';
import { asList, type Fields, isFields, numberIn, toNumber } from './wire/codec.ts';
import type { DaskContext } from './context.ts';
import { namesOfWireKey } from './graph/materialized.ts';
import { logs, profile } from './cluster.ts';
import { callTreeOf } from './inspection.ts';

/** One action of a task: what, and seconds since 1970. */
type Action = readonly [name: string, startS: number, stopS: number];

/** A task as its worker reported it. */
interface RanTask {
  readonly key: string;
  readonly prefix: string;
  readonly worker: string;
  /** Of the worker, as Python names it. */
  readonly thread: string;
  readonly isError: boolean;
  readonly nbytes: number;
  readonly type: string;
  readonly actions: readonly Action[];
}

interface Sums {
  tasks: number;
  failed: number;
  computeS: number;
  longestS: number;
  transferS: number;
  diskS: number;
  nbytes: number;
}

/** The figures of a report, beside what it quotes. */
interface ReportFigures {
  readonly tasks: readonly RanTask[];
  /** Seconds by action. */
  readonly byAction: ReadonlyMap<string, number>;
  readonly byPrefix: ReadonlyMap<string, Sums>;
  readonly byWorker: ReadonlyMap<string, Sums>;
  readonly byType: ReadonlyMap<string, Sums>;
  readonly all: Sums;
}

/** Entries of the task stream as numbers. */
function ranTasks({ keys }: DaskContext, entries: readonly Fields[]): RanTask[] {
  return entries.map((entry) => {
    const key = keys.textOf(entry['key']);
    return {
      key,
      prefix: namesOfWireKey(entry['key'])?.prefix ?? prefixOfKey(key),
      worker: String(entry['worker']),
      thread: String(entry['thread']),
      isError: entry['status'] !== 'OK',
      nbytes: toNumber(entry['nbytes']) ?? 0,
      type: typeof entry['typename'] === 'string' ? entry['typename'] : '',
      actions: (asList(entry['startstops']) ?? []).filter(isFields).map((part) => {
        const [startS, stopS] = [toNumber(part['start']) ?? 0, toNumber(part['stop']) ?? 0];
        return [String(part['action']), startS, stopS] as const;
      }),
    };
  });
}

/** O(tasks). */
function figuresOf(tasks: readonly RanTask[]): ReportFigures {
  const byAction = new Map<string, number>();
  const tables = [new Map<string, Sums>(), new Map<string, Sums>(), new Map<string, Sums>()];
  const all = noSums();
  for (const task of tasks) {
    for (const [name, startS, stopS] of task.actions) {
      byAction.set(name, (byAction.get(name) ?? 0) + stopS - startS);
    }
    const { prefix, worker, type } = task;
    add(all, task);
    [prefix, worker, type].forEach((name, k) => {
      const table = tables[k];
      const sums = table?.get(name) ?? noSums();
      table?.set(name, sums);
      add(sums, task);
    });
  }
  const [byPrefix = new Map(), byWorker = new Map(), byType = new Map()] = tables;
  return { tasks, byAction, byPrefix, byWorker, byType, all };
}

function noSums(): Sums {
  return { tasks: 0, failed: 0, computeS: 0, longestS: 0, transferS: 0, diskS: 0, nbytes: 0 };
}

function add(sums: Sums, { isError, nbytes, actions }: RanTask): void {
  sums.tasks++;
  if (isError) sums.failed++;
  else sums.nbytes += nbytes;
  for (const [name, startS, stopS] of actions) {
    const s = stopS - startS;
    if (name === 'compute') {
      sums.computeS += s;
      sums.longestS = Math.max(sums.longestS, s);
    } else if (name === 'transfer') sums.transferS += s;
    else if (name.startsWith('disk')) sums.diskS += s;
  }
}

interface Observed {
  readonly figures: ReportFigures;
  readonly startS: number;
  readonly stopS: number;
  readonly workers: readonly { readonly threads: number }[];
}

/** The figures in a few sentences, with what can be done about them. */
function findingsIn({ figures, startS, stopS, workers }: Observed): readonly string[] {
  const { all, byPrefix } = figures;
  const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
  const availableS = threads * (stopS - startS);
  if (all.tasks === 0) return ['No task ran on a worker of Dask in this time.'];
  return [
    ...busyness(all.computeS, availableS, threads),
    ...longest(byPrefix, all.computeS),
    ...transfers(figures),
    ...short(byPrefix),
    ...(all.failed > 0 ? [`${countOf(all.failed, 'task')} failed.`] : []),
  ];
}

function* busyness(computeS: number, availableS: number, threads: number): Iterable<string> {
  if (availableS <= 0) return;
  const percent = Math.min(100, Math.round((100 * computeS) / availableS));
  const advice =
    percent >= 60
      ? ''
      : ' Gaps in the task stream show when threads had nothing to do: too few tasks at a time, one long task, or transfers.';
  yield `The ${countOf(threads, 'thread')} computed in ${percent} % of the time.${advice}`;
}

function* longest(byPrefix: ReportFigures['byPrefix'], computeS: number): Iterable<string> {
  const [first] = [...byPrefix].toSorted(([, a], [, b]) => b.computeS - a.computeS);
  if (first === undefined || computeS <= 0) return;
  const [name, sums] = first;
  const percent = Math.round((100 * sums.computeS) / computeS);
  yield `${name} took ${percent} % of the computing time: ${countOf(sums.tasks, 'task')} of ${seconds(sums.computeS / sums.tasks)} on average, ${seconds(sums.longestS)} at most.`;
}

function* transfers({ all, byPrefix }: ReportFigures): Iterable<string> {
  const percent = Math.round((100 * all.transferS) / Math.max(1e-9, all.computeS + all.transferS));
  if (percent >= 10) {
    const [most] = [...byPrefix].toSorted(([, a], [, b]) => b.transferS - a.transferS);
    yield `Tasks waited ${seconds(all.transferS)} for inputs from other workers (${percent} % of computing and transfers), most of it before ${most?.[0] ?? ''}: larger tasks near their inputs would move less.`;
  }
  if (all.diskS > 0.01 * all.computeS) {
    yield `Results of ${bytes(all.nbytes)} did not always fit into memory: reading and writing them took ${seconds(all.diskS)}.`;
  }
}

function* short(byPrefix: ReportFigures['byPrefix']): Iterable<string> {
  for (const [name, { tasks, computeS }] of byPrefix) {
    if (tasks < 1000 || computeS / tasks > 0.001) continue;
    yield `${tasks} tasks of ${name} took ${seconds(computeS / tasks)} each, less than it takes to hand out one: make them larger.`;
    return;
  }
}

// `performance_report`: one HTML file about the work between two moments.

const NOT_SAMPLED = '<p>Nothing was sampled: workers look every 10 ms at what they run.</p>';

function shownTree(profile: unknown): CallTree {
  return pruned({ ...callTreeOf(profile), name: 'all' });
}

/** Lines of the scheduler's log that are quoted. */
const LINES_MAX = 200;

/**
 * @param entries - of the task stream, since `start`
 * @param request - `start` in seconds since 1970, and `code`, which called
 */
export async function performanceReport(
  context: DaskContext,
  entries: readonly Fields[],
  request: Fields,
): Promise<string> {
  const { start } = request;
  const stopS = context.nowS();
  const [compute, server, lines, packages, script, style] = await Promise.all([
    profile({ start }, context),
    profile({ start, server: true }, context),
    logs({ start, n: LINES_MAX }, context),
    context.graphs.packages().catch(() => context.graphs.versions),
    asset('performance-report.js'),
    asset('app.css'),
  ]);
  const { cluster } = context;
  const { code } = request;
  return reportPage({
    figures: figuresOf(ranTasks(context, entries)),
    startS: numberIn(request, 'start') ?? stopS,
    stopS,
    address: context.address,
    workers: Array.from(cluster.workers.values(), (worker) => {
      const { address, name, threadCount: threads, memoryLimitBytes } = worker;
      return { address, name, threads, memoryLimitBytes, memoryBytes: worker.memory.process };
    }),
    versions: { ...packages, yardmaster: VERSION },
    code: typeof code === 'string' ? code : '',
    profiles: { compute: shownTree(compute), server: shownTree(server) },
    logLines: lines.map((line) => (line as readonly unknown[]).map(String).join(' ')),
    script: script ?? '',
    style: style ?? '',
  });
}

/** A worker as it is when the report is made. */
interface ReportedWorker {
  readonly address: string;
  readonly name: string;
  readonly threads: number;
  readonly memoryLimitBytes: number;
  readonly memoryBytes: number;
}

interface ReportParts {
  readonly figures: ReportFigures;
  readonly startS: number;
  readonly stopS: number;
  readonly address: string;
  readonly workers: readonly ReportedWorker[];
  readonly versions: Readonly<Record<string, unknown>>;
  /** The lines of the client that called. */
  readonly code: string;
  readonly profiles: Readonly<Record<'compute' | 'server', CallTree>>;
  readonly logLines: readonly string[];
  /** Draws the task stream. */
  readonly script: string;
  readonly style: string;
}

const OWN_STYLE = `
h1 { font-size: 1.3rem; } pre { overflow: auto; } td, th { white-space: nowrap; }
summary { cursor: pointer; font-weight: 600; padding: 0.3rem 0; }
`;

/** One file without network: what is shown comes with it, and no other script can run in it. */
function reportPage(parts: ReportParts): string {
  const { figures, script, style, code, logLines } = parts;
  const css = style + OWN_STYLE;
  const policy = `default-src 'none'; img-src data:; script-src '${hashOf(script)}'; style-src '${hashOf(css)}'`;
  const log = logLines.length === 0 ? 'No logs to report' : logLines.toReversed().join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${escapeText(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dask Performance Report</title><link rel="icon" href="data:,"><style>${css}</style></head>
<body><main>
<h1>Dask Performance Report</h1>
${summary(parts)}
<section><h2>What stands out</h2><ul class="sentences">
${findingsIn(parts)
  .map((text) => `<li>${escapeText(text)}</li>`)
  .join('\n')}
</ul></section>
<section><h2>Calling Code</h2><pre tabindex="0">${escapeText(code)}</pre></section>
${sumsTable('Tasks by prefix', 'prefix', figures.byPrefix)}
<div id="stream"></div>
${workersTable(parts)}
${sumsTable('Results by type', 'type', figures.byType)}
<section><h2>Worker Profile (compute)</h2><div id="compute">${NOT_SAMPLED}</div></section>
<section><details><summary>Worker Profile (administrative)</summary><div id="server">${NOT_SAMPLED}</div></details></section>
<section><details><summary>Scheduler Logs</summary><pre tabindex="0">${escapeText(log)}</pre></details></section>
</main>
<script type="application/json" id="data">${dataFor(parts)}</script>
<script type="module">${script}</script>
</body></html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

function summary({ figures, startS, stopS, address, workers, versions }: ReportParts): string {
  const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
  const memory = workers.reduce((sum, { memoryLimitBytes }) => sum + memoryLimitBytes, 0);
  const times = [...figures.byAction].toSorted(([, a], [, b]) => b - a);
  const lines = [
    `Duration: ${seconds(stopS - startS)}`,
    `number of tasks: ${figures.all.tasks}`,
    ...(figures.all.failed === 0 ? [] : [`failed tasks: ${figures.all.failed}`]),
    ...times.map(([action, s]) => `${action} time: ${seconds(s)}`),
    `Address: ${address}`,
    `Workers: ${workers.length}`,
    `Threads: ${threads}`,
    `Memory: ${bytes(memory)}`,
    ...['dask', 'distributed', 'python', 'yardmaster'].flatMap((name) => {
      const version = versions[name];
      return typeof version === 'string' ? [`${name}: ${version}`] : [];
    }),
  ];
  const items = lines.map((line) => `<li>${escapeText(line)}</li>`).join('\n');
  return `<section><h2>Summary</h2><ul>\n${items}\n</ul></section>`;
}

function sumsTable(title: string, name: string, table: ReadonlyMap<string, Sums>): string {
  const titles = [
    name,
    'tasks',
    'failed',
    'compute',
    'mean',
    'longest',
    'transfer',
    'disk',
    'results',
  ];
  const rows = [...table]
    .toSorted(([, a], [, b]) => b.computeS - a.computeS)
    .map(([of, sums]) => [of, ...cellsOf(sums)]);
  return `<section><h2>${title}</h2>${htmlTable(titles, rows)}</section>`;
}

function workersTable({ workers, figures, startS, stopS }: ReportParts): string {
  const titles = [
    ...['worker', 'address', 'threads', 'busy', 'memory now', 'tasks', 'failed', 'compute'],
    ...['mean', 'longest', 'transfer', 'disk', 'results'],
  ];
  const rows = workers.map(({ address, name, threads, memoryBytes }) => {
    const sums = figures.byWorker.get(address);
    const share = (sums?.computeS ?? 0) / Math.max(1e-9, threads * (stopS - startS));
    const busy = `${Math.min(100, Math.round(100 * share))} %`;
    const cells = sums === undefined ? new Array<string>(8).fill('–') : cellsOf(sums);
    return [name, address, String(threads), busy, bytes(memoryBytes), ...cells];
  });
  return `<section><h2>Workers</h2>${htmlTable(titles, rows)}</section>`;
}

function cellsOf(sums: Sums): string[] {
  const { tasks, failed, computeS, longestS, transferS, diskS, nbytes } = sums;
  return [
    ...[count(tasks), count(failed), seconds(computeS), seconds(computeS / Math.max(1, tasks))],
    ...[seconds(longestS), seconds(transferS), seconds(diskS), bytes(nbytes)],
  ];
}

function htmlTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '<p>None.</p>';
  const head = titles.map((title) => `<th scope="col">${escapeText(title)}</th>`).join('');
  const body = rows.map(
    (row) => `<tr>${row.map((cell) => `<td>${escapeText(cell)}</td>`).join('')}</tr>`,
  );
  return `<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** For the script: names once, and tasks as lists. */
function dataFor({ figures, workers, startS, stopS, profiles }: ReportParts): string {
  const names = new Map(workers.map(({ address, name }) => [address, name]));
  const addresses = [...new Set([...names.keys(), ...figures.byWorker.keys()])];
  const numbers = new Map(addresses.map((address, k) => [address, k]));
  const lanes = new Map<string, Map<string, number>>();
  const laneOf = (worker: string, thread: string): number => {
    const known = lanes.get(worker) ?? new Map<string, number>();
    lanes.set(worker, known);
    const lane = known.get(thread) ?? known.size;
    known.set(thread, lane);
    return lane;
  };
  const ms = (s: number): number => Math.round((s - startS) * 1e5) / 100;
  const data = {
    startS,
    stopS,
    profiles,
    workers: addresses.map((address) => [address, names.get(address) ?? address]),
    tasks: figures.tasks.map(({ key, prefix, worker, thread, isError, actions }) => [
      ...[key, prefix, numbers.get(worker) ?? 0, laneOf(worker, thread), isError ? 1 : 0],
      ...actions.flatMap(([action, from, to]) => [action, ms(from), ms(to)]),
    ]),
  };
  return JSON.stringify(data).replace(/</g, '\\u003c');
}
