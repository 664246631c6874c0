import { prefixOfKey } from '../../../core/api/index.ts';
import { toNumber } from '../codec/index.ts';
import { asList, isFields } from '../codec/values.ts';
import type { DaskContext, Fields } from '../context.ts';
import { namesOfWireKey } from '../graph/key-names.ts';

/** One action of a task: what, and seconds since 1970. */
export type Action = readonly [name: string, startS: number, stopS: number];

/** A task as its worker reported it. */
export interface RanTask {
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

/** Sums over tasks. */
export interface Sums {
  tasks: number;
  failed: number;
  computeS: number;
  longestS: number;
  transferS: number;
  diskS: number;
  nbytes: number;
}

/** What a report says, beside what it quotes. */
export interface ReportFigures {
  readonly tasks: readonly RanTask[];
  /** Seconds by action. */
  readonly byAction: ReadonlyMap<string, number>;
  readonly byPrefix: ReadonlyMap<string, Sums>;
  readonly byWorker: ReadonlyMap<string, Sums>;
  readonly byType: ReadonlyMap<string, Sums>;
  readonly all: Sums;
}

/** Entries of the task stream as numbers. */
export function ranTasks({ keys }: DaskContext, entries: readonly Fields[]): RanTask[] {
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
export function figuresOf(tasks: readonly RanTask[]): ReportFigures {
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
