import { setTimeout as pause } from 'node:timers/promises';
import type { TaskSummary } from '../../../core/api/index.ts';
import { countOf, printableLines } from '../../../core/util/values.ts';
import type { Client, SchedulerIdentity } from '../../client/index.ts';
import { sizeText, textTable } from '../terminal.ts';
import { type ClientFlags, print, withClient } from '../with-client.ts';

/** Flags of `top`. */
export interface TopFlags extends ClientFlags {
  /** Milliseconds. Default 1000. */
  readonly interval?: number;
  readonly once?: boolean;
}

/** One look at a cluster. */
export interface Look {
  readonly atMs: number;
  readonly workers: SchedulerIdentity['workers'];
  readonly prefixes: readonly PrefixLook[];
  /** Some of the tasks for which there is no worker, each with the reason. */
  readonly waiting: readonly { readonly key: string; readonly why: string }[];
}

interface PrefixLook {
  readonly prefix: string;
  readonly states: Readonly<Record<string, number>>;
  readonly ever: { readonly done: number; readonly failed: number };
}

const INTERVAL_MS = 1000;
const WAITING_MAX = 3;
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

/** `yardmaster top`. */
export function topCommand(flags: TopFlags): Promise<number> {
  const { interval = INTERVAL_MS, once, json } = flags;
  return withClient(flags, 'top', async (client) => {
    if (once === true || json === true || !process.stdout.isTTY) {
      const look = await lookAt(client);
      print(look, topText(flags.scheduler, look, undefined), flags);
      return 0;
    }
    using stop = untilKey();
    let before: Look | undefined;
    while (!stop.signal.aborted) {
      const look = await lookAt(client);
      const { rows, columns } = process.stdout;
      const linesMax = Math.max(4, Math.floor((rows - OTHER_LINES) / 2));
      const text = printableLines(topText(flags.scheduler, look, before, linesMax));
      process.stdout.write(`${CLEAR}${clipped(text, rows - 1, columns)}\n`);
      before = look;
      await pause(interval, undefined, { signal: stop.signal }).catch(() => undefined);
    }
    return 0;
  });
}

async function lookAt(client: Client): Promise<Look> {
  const [{ workers }, prefixes, stuck] = await Promise.all([
    client.identity(),
    client.command<readonly PrefixLook[]>('task-counts', { withPast: true }),
    client.command<readonly TaskSummary[]>('list-tasks', {
      state: 'no-worker',
      limit: WAITING_MAX,
    }),
  ]);
  const reasons = await Promise.all(stuck.map(({ key }) => client.why(key)));
  const waiting = reasons.map(({ key, now }) => ({ key, why: now[0] ?? '' }));
  return { atMs: performance.now(), workers, prefixes, waiting };
}

/**
 * A look as text for people.
 * @param before - the look before it, from which what is done a second follows
 * @param linesMax - workers, and prefixes, that are shown at most
 */
export function topText(
  address: string,
  look: Look,
  before: Look | undefined,
  linesMax = Infinity,
): string {
  const { workers, prefixes, waiting } = look;
  const rates = ratesOf(look, before);
  const threads = workers.reduce((sum, { threadCount }) => sum + threadCount, 0);
  const rate = [...rates.values()].reduce((sum, each) => sum + each, 0);
  const speed = before === undefined ? '' : `, ${rateText(rate)} tasks done a second`;
  const fullest = workers.toSorted((a, b) => loadOf(b) - loadOf(a));
  const busiest = prefixes
    .filter(({ states, prefix }) => Object.keys(states).length > 0 || (rates.get(prefix) ?? 0) > 0)
    .sort((a, b) => activityOf(b) - activityOf(a));
  const stuck = prefixes.reduce((sum, { states }) => sum + (states['no-worker'] ?? 0), 0);
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
    ...(stuck === 0 ? [] : ['', `${countOf(stuck, 'task waits', 'tasks wait')} for a worker`]),
    ...waiting.map(({ key, why }) => `  ${key}: ${why}`),
  ].join('\n');
}

/** The part of a text that fits on a screen: a line that wraps would move the first ones out of sight. */
export function clipped(text: string, rows: number, columns: number): string {
  const lines = text.split('\n').slice(0, rows);
  return lines
    .map((line) => (line.length > columns ? `${line.slice(0, columns - 1)}…` : line))
    .join('\n');
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

function loadOf({ processingCount, threadCount }: Look['workers'][number]): number {
  return processingCount / threadCount;
}

function activityOf({ states }: PrefixLook): number {
  const { processing = 0, queued = 0, waiting = 0 } = states;
  return processing * 1e12 + (queued + waiting) * 1e3 + (states['no-worker'] ?? 0);
}

function workerRow(worker: Look['workers'][number]): (string | number)[] {
  const { name, status, threadCount, processingCount, resultCount, nbytes, metrics } = worker;
  const { memoryLimitBytes } = worker;
  const limit = memoryLimitBytes > 0 ? ` of ${sizeText(memoryLimitBytes)}` : '';
  const memory = `${sizeText(metrics.memoryBytes)}${limit}`;
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

/** Ends with `q`, Ctrl-C or SIGTERM. */
function untilKey(): Disposable & { readonly signal: AbortSignal } {
  const { stdin } = process;
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const onKey = (bytes: Buffer): void => {
    // In raw mode Ctrl-C is a byte.
    if (bytes.includes('q') || bytes.includes(3)) stop();
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
