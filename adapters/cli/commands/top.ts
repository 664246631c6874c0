import { setTimeout as pause } from 'node:timers/promises';
import type { Sentence } from '../../../core/shared/waiting.ts';
import { sizeText } from '../../../core/util/units.ts';
import { countOf, printableLines } from '../../../core/util/values.ts';
import type { Client, SchedulerIdentity } from '../../client/index.ts';
import { barOf, fitted } from '../../client/progress-bars.ts';
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
/** Lines for titles and what waits. */
const OTHER_LINES = 12;
const CLEAR = '\u001b[H\u001b[2J';
const WORKER_TITLES = [
  'worker',
  'status',
  'threads',
  'tasks',
  'results',
  'stored',
  'memory',
  'cpu',
];
/** States as the API names them; `waiting` is any kind of it. */
const PREFIX_TITLES = ['prefix', 'waiting', 'processing', 'memory', 'erred', 'done', 'done/s'];

export function topCommand(flags: TopFlags): Promise<number> {
  const { interval = INTERVAL_MS, once, json, sort } = flags;
  return withClient(flags, 'top', async (client) => {
    if (once === true || json === true || !process.stdout.isTTY) {
      const look = await lookAt(client);
      print(look, topText(flags.scheduler, look, undefined, { sort }), flags);
      return 0;
    }
    let sortedBy = sort;
    using stop = untilKey((letter) => {
      sortedBy = TOP_SORTS.find((name) => name.startsWith(letter)) ?? sortedBy;
    });
    let before: Look | undefined;
    while (!stop.signal.aborted) {
      const look = await lookAt(client);
      const { rows, columns } = process.stdout;
      const linesMax = Math.max(4, Math.floor((rows - OTHER_LINES) / 2));
      const shown = topText(flags.scheduler, look, before, { linesMax, sort: sortedBy });
      const text = clipped(printableLines(shown), rows - 1, columns);
      process.stdout.write(`${CLEAR}${process.stdout.hasColors() ? coloured(text) : text}\n`);
      before = look;
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
}

/**
 * A look as text for people.
 * @param before - the look before it, from which what is done a second follows
 */
export function topText(
  address: string,
  look: Look,
  before: Look | undefined,
  { linesMax = Infinity, sort = 'tasks' }: TopView = {},
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
  return [
    `${address}: ${countOf(workers.length, 'worker')}, ${countOf(threads, 'thread')}${speed}`,
    '',
    ...tableOf(WORKER_TITLES, fullest.map(workerRow), linesMax, 'workers'),
    '',
    ...tableOf(
      PREFIX_TITLES,
      busiest.map((each) => prefixRow(each, rates.get(each.prefix))),
      linesMax,
      'prefixes',
    ),
    ...(waiting.length === 0 ? [] : ['', ...waiting.map(({ text }) => text)]),
  ].join('\n');
}

/** The part of a text that fits on a screen: a line that wraps would move the first ones out of sight. */
export function clipped(text: string, rows: number, columns: number): string {
  const lines = text.split('\n').slice(0, rows);
  return lines.map((line) => fitted(line, columns)).join('\n');
}

function tableOf(
  titles: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  linesMax: number,
  what: string,
): string[] {
  if (rows.length === 0) return [`no ${what}`];
  const more = rows.length - linesMax;
  const table = textTable(titles, rows.slice(0, linesMax));
  return more > 0 ? [table, `and ${more} more ${what}`] : [table];
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
  return [name, status, threadCount, processingCount, resultCount, sizeText(nbytes), memory, cpu];
}

function prefixRow(
  { prefix, states, ever }: PrefixLook,
  rate: number | undefined,
): (string | number)[] {
  const { waiting = 0, queued = 0, processing = 0, memory = 0, erred = 0 } = states;
  const all = waiting + queued + (states['no-worker'] ?? 0);
  const speed = rate === undefined ? '' : rateText(rate);
  return [prefix, all, processing, memory, erred, ever.done, speed];
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
