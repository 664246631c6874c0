import { setTimeout as pause } from 'node:timers/promises';
import stringWidth from 'string-width';
import type { Sentence } from '../../../core/shared/waiting.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf, numberText, printable, printableLines } from '../../../core/util/values.ts';
import type { Client, SchedulerIdentity } from '../../client/index.ts';
import { barOf, fitted, wrapped } from '../../client/progress-bars.ts';
import { textTable, TOP_SORTS, type TopSort } from '../terminal.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

export interface TopFlags extends ClientFlags {
  /** Milliseconds. Default 1000. */
  readonly interval?: number;
  readonly once?: boolean;
  /** The column by which workers are sorted. Default: by tasks for each thread. */
  readonly sort?: TopSort;
}

/** One look at a cluster. */
export interface Look {
  readonly atMs: number;
  readonly workers: SchedulerIdentity['workers'];
  readonly prefixes: readonly PrefixLook[];
  /** As on the first page of the dashboard. */
  readonly waiting: readonly Sentence[];
}

interface PrefixLook {
  readonly prefix: string;
  readonly states: Readonly<Record<string, number>>;
  readonly ever: { readonly done: number; readonly failed: number };
}

const INTERVAL_MS = 1000;
/** The rate is that of the last ten seconds, as on the dashboard. */
const RATE_MS = 10_000;
/** Lines for titles and what waits. */
const OTHER_LINES = 12;
const CLEAR = '\u001b[H\u001b[2J';
/** The most important columns first: the last ones are left out where a terminal is too narrow. */
const WORKER_TITLES = [
  'worker',
  'status',
  'tasks',
  'cpu',
  'memory',
  'threads',
  'stored',
  'results',
];

export function topCommand(flags: TopFlags): Promise<number> {
  const { interval = INTERVAL_MS, once, json, sort } = flags;
  return withClient(flags, 'top', async (client) => {
    if (once === true || json === true || !process.stdout.isTTY) {
      const look = await lookAt(client);
      // Shells say the width of the terminal also to programs whose output goes on into another one.
      const columns = process.stdout.columns || Number(process.env['COLUMNS']) || Infinity;
      print(look, topText(flags.scheduler, look, undefined, { sort, columns }), flags);
      return 0;
    }
    let sortedBy = sort;
    using stop = untilKey((letter) => {
      sortedBy = TOP_SORTS.find((name) => name.startsWith(letter)) ?? sortedBy;
    });
    const looks: Look[] = [];
    while (!stop.signal.aborted) {
      const look = await lookAt(client);
      while (looks.length > 1 && look.atMs - (looks[0]?.atMs ?? 0) > RATE_MS) looks.shift();
      const { rows, columns } = process.stdout;
      const linesMax = Math.max(4, Math.floor((rows - OTHER_LINES) / 2));
      const shown = topText(flags.scheduler, look, looks[0], { linesMax, sort: sortedBy, columns });
      const text = clipped(printableLines(shown), rows - 1, columns);
      process.stdout.write(`${CLEAR}${process.stdout.hasColors() ? coloured(text) : text}\n`);
      looks.push(look);
      await pause(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    return 0;
  });
}

async function lookAt(client: Client): Promise<Look> {
  const [{ workers }, prefixes, waiting] = await Promise.all([
    client.identity(),
    client.command<readonly PrefixLook[]>('task-counts', { withPast: true }),
    client.command<readonly Sentence[]>('what-waits'),
  ]);
  return { atMs: performance.now(), workers, prefixes, waiting };
}

interface TopView {
  /** Workers, and prefixes, that are shown at most. */
  readonly linesMax?: number;
  readonly sort?: TopSort;
  /** The width of the terminal. Default: any. */
  readonly columns?: number;
}

/**
 * A look as text for people.
 * @param before - an earlier look, from which the tasks done each second follow; without one they are left out
 */
export function topText(
  address: string,
  look: Look,
  before: Look | undefined,
  { linesMax = Infinity, sort = 'tasks', columns = Infinity }: TopView = {},
): string {
  const { workers, prefixes, waiting } = look;
  const rates = ratesOf(look, before);
  const threads = workers.reduce((sum, { threadCount }) => sum + threadCount, 0);
  const rate = [...rates.values()].reduce((sum, each) => sum + each, 0);
  const speed = before === undefined ? '' : `, ${rateText(rate)} tasks done a second`;
  const fullest = workers.toSorted(
    sort === 'name'
      ? (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })
      : (a, b) => LOADS[sort](b) - LOADS[sort](a),
  );
  const busiest = prefixes
    .filter(({ states, prefix }) => Object.keys(states).length > 0 || (rates.get(prefix) ?? 0) > 0)
    .sort((a, b) => activityOf(b) - activityOf(a));
  // Not begun are those that wait, are queued, or have no worker, as on the dashboard.
  const speedTitle = before === undefined ? [] : ['done/s'];
  const titles = ['prefix', 'not begun', 'processing', ...speedTitle, 'done', 'erred', 'memory'];
  const lines = (...texts: string[]): string[] =>
    texts.flatMap((text) => wrapped(printable(text), columns));
  return [
    ...lines(
      `${address}: ${countOf(workers.length, 'worker')}, ${countOf(threads, 'thread')}${speed}`,
      ...troublesOf(look),
    ),
    '',
    ...tableOf(WORKER_TITLES, fullest.map(workerRow), { linesMax, columns }, 'workers'),
    '',
    ...tableOf(
      titles,
      busiest.map((each) => prefixRow(each, rates.get(each.prefix))),
      { linesMax, columns },
      'prefixes',
    ),
    ...(waiting.length === 0 ? [] : ['', ...lines(...waiting.map(({ text }) => text))]),
  ].join('\n');
}

/** The part of a text that fits on a screen: a line that wraps would move the first ones out of sight. */
export function clipped(text: string, rows: number, columns: number): string {
  const lines = text.split('\n').slice(0, rows);
  return lines.map((line) => fitted(line, columns)).join('\n');
}

/** Failures and spilled bytes in one line, if there are any; full limits are part of what waits. */
function troublesOf({ prefixes, workers }: Look): string[] {
  const failed = prefixes.reduce((all, { ever }) => all + ever.failed, 0);
  const spilled = workers.reduce((all, { metrics }) => all + (metrics.spilledDiskBytes ?? 0), 0);
  const troubles = [
    ...(failed > 0 ? [countOf(failed, 'task has failed', 'tasks have failed')] : []),
    ...(spilled > 0 ? [`${sizeText(spilled)} of results are on disk`] : []),
  ];
  return troubles.length === 0 ? [] : [`${troubles.join('; ')}.`];
}

function tableOf(
  titles: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  { linesMax, columns }: { readonly linesMax: number; readonly columns: number },
  what: string,
): string[] {
  if (rows.length === 0) return [`no ${what}`];
  const shown = rows
    .slice(0, linesMax)
    .map(([name, ...cells]) => [fitted(String(name), Math.max(24, columns / 3)), ...cells]);
  let [count, table] = [titles.length, textTable(titles, shown).split('\n')];
  while (count > 2 && table.some((line) => stringWidth(line) > columns)) {
    count--;
    const narrower = shown.map((row) => row.slice(0, count));
    table = textTable(titles.slice(0, count), narrower).split('\n');
  }
  const more = rows.length - linesMax;
  const rest = more > 0 ? [`and ${numberText(more)} more ${what}`] : [];
  return [...table, ...rest].map((line) => fitted(line, columns));
}

/** The tasks done each second, by prefix. Empty at the first look. */
function ratesOf({ prefixes, atMs }: Look, before: Look | undefined): Map<string, number> {
  if (before === undefined) return new Map();
  const seconds = Math.max(0.001, (atMs - before.atMs) / 1000);
  const earlier = new Map(before.prefixes.map(({ prefix, ever }) => [prefix, ever.done]));
  return new Map(
    prefixes.map(({ prefix, ever }) => {
      return [prefix, Math.max(0, ever.done - (earlier.get(prefix) ?? 0)) / seconds];
    }),
  );
}

type WorkerLook = Look['workers'][number];

/** Figures by which workers are sorted, the largest first. */
const LOADS: Readonly<Record<Exclude<TopSort, 'name'>, (worker: WorkerLook) => number>> = {
  tasks: ({ processingCount, threadCount }) => processingCount / threadCount,
  cpu: ({ metrics }) => metrics.cpuPercent ?? 0,
  memory: ({ metrics }) => metrics.memoryBytes,
};

const BAR_LENGTH = 8;

const ESCAPE = '\u001b[';

/** Colours for a terminal: titles, bars, and words for what is wrong. Other text is as it was. */
export function coloured(text: string): string {
  return text
    .replace(/^(?:worker|prefix) .*$/gm, `${ESCAPE}1m$&${ESCAPE}0m`)
    .replace(/█{7,}░*/g, `${ESCAPE}31m$&${ESCAPE}0m`)
    .replace(/(?<!█)█{1,6}░+/g, `${ESCAPE}32m$&${ESCAPE}0m`)
    .replace(/(?<= )(?:paused|closing|closing-gracefully)(?= )/g, `${ESCAPE}33m$&${ESCAPE}0m`);
}

function activityOf({ states }: PrefixLook): number {
  const { processing = 0, queued = 0, waiting = 0 } = states;
  return processing * 1e12 + (queued + waiting) * 1e3 + (states['no-worker'] ?? 0);
}

function workerRow(worker: Look['workers'][number]): (string | number)[] {
  const { name, status, threadCount, processingCount, resultCount, nbytes, metrics } = worker;
  const { memoryLimitBytes } = worker;
  const isLimited = memoryLimitBytes > 0;
  const bar = isLimited ? `${barOf(metrics.memoryBytes / memoryLimitBytes, BAR_LENGTH)} ` : '';
  const limit = isLimited ? ` of ${sizeText(memoryLimitBytes)}` : '';
  const memory = `${bar}${sizeText(metrics.memoryBytes)}${limit}`;
  const cpu = metrics.cpuPercent === undefined ? '' : `${Math.round(metrics.cpuPercent)} %`;
  return [name, status, processingCount, cpu, memory, threadCount, sizeText(nbytes), resultCount];
}

function prefixRow(
  { prefix, states, ever }: PrefixLook,
  rate: number | undefined,
): (string | number)[] {
  const { waiting = 0, queued = 0, processing = 0, memory = 0, erred = 0 } = states;
  const all = waiting + queued + (states['no-worker'] ?? 0);
  const speed = rate === undefined ? [] : [rateText(rate)];
  return [prefix, all, processing, ...speed, ever.done, erred, memory];
}

function rateText(rate: number): string {
  return rate >= 10 || rate === 0 ? String(Math.round(rate)) : rate.toFixed(1);
}

/** Ends with `q`, Ctrl-C or SIGTERM. @param onLetter - called with other keys */
function untilKey(
  onLetter: (letter: string) => void,
): Disposable & { readonly signal: AbortSignal } {
  const { stdin } = process;
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const onKey = (bytes: Buffer): void => {
    // In raw mode Ctrl-C is a byte.
    if (bytes.includes('q') || bytes.includes(3)) stop();
    else if (bytes.length === 1) onLetter(bytes.toString('latin1'));
  };
  const isRaw = stdin.isTTY;
  if (isRaw) stdin.setRawMode(true);
  stdin.on('data', onKey);
  process.on('SIGTERM', stop).on('SIGINT', stop);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      if (isRaw) stdin.setRawMode(false);
      stdin.off('data', onKey).pause();
      process.off('SIGTERM', stop).off('SIGINT', stop);
    },
  };
}
