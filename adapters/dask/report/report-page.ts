import { createHash } from 'node:crypto';

import { bytes, count, seconds } from '../../dashboard/page/format.ts';
import { escape } from '../../dashboard/routes/plain-page.ts';
import type { ReportFigures, Sums } from './figures.ts';
import { findingsIn } from './findings.ts';
import { flameGraph } from './flame-graph.ts';

/** A worker as it is when the report is made. */
export interface ReportedWorker {
  readonly address: string;
  readonly name: string;
  readonly threads: number;
  readonly memoryLimitBytes: number;
  readonly memoryBytes: number;
}

/** All that is in a report. */
export interface ReportParts {
  readonly figures: ReportFigures;
  readonly startS: number;
  readonly stopS: number;
  readonly address: string;
  readonly workers: readonly ReportedWorker[];
  readonly versions: Readonly<Record<string, unknown>>;
  /** The lines of the client that called. */
  readonly code: string;
  readonly profiles: { readonly compute: unknown; readonly server: unknown };
  readonly logLines: readonly string[];
  /** Draws the task stream. */
  readonly script: string;
  readonly style: string;
}

const OWN_STYLE = `
h1 { font-size: 1.3rem; } pre { overflow: auto; } td, th { white-space: nowrap; }
.flame { width: 100%; border: 1px solid var(--line); } .flame text { font: 11px sans-serif; fill: #1a2129; }
summary { cursor: pointer; font-weight: 600; padding: 0.3rem 0; }
`;

/** One file without network: what is shown comes with it, and no other script can run in it. */
export function reportPage(parts: ReportParts): string {
  const { figures, script, style, code, profiles, logLines } = parts;
  const css = style + OWN_STYLE;
  const policy = `default-src 'none'; img-src data:; script-src '${hashOf(script)}'; style-src '${hashOf(css)}'`;
  const log = logLines.length === 0 ? 'No logs to report' : logLines.toReversed().join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dask Performance Report</title><link rel="icon" href="data:,"><style>${css}</style></head>
<body><main>
<h1>Dask Performance Report</h1>
${summary(parts)}
<section><h2>What stands out</h2><ul class="sentences">
${findingsIn(parts)
  .map((text) => `<li>${escape(text)}</li>`)
  .join('\n')}
</ul></section>
<section><h2>Calling Code</h2><pre tabindex="0">${escape(code)}</pre></section>
${sumsTable('Tasks by prefix', 'prefix', figures.byPrefix)}
<div id="stream"></div>
${workersTable(parts)}
${sumsTable('Results by type', 'type', figures.byType)}
<section><h2>Worker Profile (compute)</h2>${flameGraph(profiles.compute, 'What workers computed, by function')}</section>
<section><details><summary>Worker Profile (administrative)</summary>${flameGraph(profiles.server, 'What the event loops of workers did, by function')}</details></section>
<section><details><summary>Scheduler Logs</summary><pre tabindex="0">${escape(log)}</pre></details></section>
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
  const items = lines.map((line) => `<li>${escape(line)}</li>`).join('\n');
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
  const head = titles.map((title) => `<th scope="col">${escape(title)}</th>`).join('');
  const body = rows.map(
    (row) => `<tr>${row.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`,
  );
  return `<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** For the script: names once, and tasks as lists. */
function dataFor({ figures, workers, startS, stopS }: ReportParts): string {
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
    workers: addresses.map((address) => [address, names.get(address) ?? address]),
    tasks: figures.tasks.map(({ key, prefix, worker, thread, isError, actions }) => [
      ...[key, prefix, numbers.get(worker) ?? 0, laneOf(worker, thread), isError ? 1 : 0],
      ...actions.flatMap(([action, from, to]) => [action, ms(from), ms(to)]),
    ]),
  };
  return JSON.stringify(data).replace(/</g, '\\u003c');
}
