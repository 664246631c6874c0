import type { GraphTask } from '../../core/api/index.ts';
import { best, liveResults } from '../../policies/ordering/best.ts';
import { daskOrder } from '../../policies/ordering/dask.ts';
import { indexGraph } from '../../policies/ordering/graph-index.ts';
import { evaluate } from './order-properties.ts';
import type { CaseResult, PartResult } from './report.ts';
import { ranksOf } from '../kit/orders.ts';
import { made } from '../kit/made.ts';

interface RecordedGraph {
  readonly keys: readonly string[];
  readonly deps: readonly (readonly number[])[];
  /** Keys that are data, not tasks. */
  readonly dataRoots?: readonly string[];
}

/** Graphs and what was asserted about their order. */
export interface PropertyCase {
  readonly id: string;
  readonly test: string;
  readonly graphs: readonly RecordedGraph[];
  readonly properties: readonly { readonly expr: unknown; readonly holdsForDaskHead: boolean }[];
  readonly cyclicGraphs?: readonly RecordedGraph[];
}

interface Metrics {
  readonly peakLive: number;
  readonly sumAges: number;
}

/** A graph, and how many results the orders of others keep. */
export interface PeakCase extends RecordedGraph {
  readonly id: string;
  readonly reference: {
    readonly dask2022_12_1: Metrics;
    readonly daskHead: Metrics;
    readonly naiveDfs: Metrics;
  };
  readonly bestDaskPeak: number;
  /** Whether a naive order keeps more than the better version of Dask. */
  readonly discriminating: boolean;
}

/** Tests about names: recorded keys are tuples joined by commas, whose order is not that of the joined. */
const ABOUT_NAMES = /break_ties_by_str|string_ordering/;

const likeDask = made(daskOrder);
const leastPeak = made(best);

/** Whether what holds for Dask HEAD holds here; cycles must be refused. */
export function runProperties(cases: readonly PropertyCase[]): PartResult {
  const informative = cases.filter(({ test }) => ABOUT_NAMES.test(test));
  const counted = cases.filter((recorded) => !informative.includes(recorded));
  return {
    part: 'order/tests',
    cases: counted.flatMap((recorded) => [...holding(recorded), ...refusing(recorded)]),
    ...(informative.length > 0
      ? { skipped: `${informative.length} about the order of names not counted` }
      : {}),
  };
}

function holding({ id, test, graphs, properties }: PropertyCase): CaseResult[] {
  const orders: ReadonlyMap<string, number>[] = [];
  const pressures: (readonly number[])[] = [];
  for (const graph of graphs) {
    const tasks = tasksOf(graph);
    const ranks = ranksOf(likeDask, tasks, []);
    const wrong = whyInvalid(graph, ranks);
    if (wrong !== undefined) return [{ id, failure: `${test}: ${wrong}` }];
    orders.push(new Map(graph.keys.map((key, index) => [key, ranks[index] as number])));
    pressures.push(pressureOf(tasks, ranks));
  }
  const facts = {
    rankOf: (graph: number, key: string) => orders[graph]?.get(key) ?? Number.NaN,
    pressure: (graph: number) => pressures[graph] ?? [],
  };
  const asked = properties.filter(({ holdsForDaskHead }) => holdsForDaskHead);
  if (asked.length === 0) return [{ id }];
  return asked.map(({ expr }, index) => {
    const name = `${id}-${index}`;
    if (evaluate(expr, facts) === true) return { id: name };
    return { id: name, failure: `${test}: does not hold: ${JSON.stringify(expr)}` };
  });
}

function refusing({ id, test, cyclicGraphs = [] }: PropertyCase): CaseResult[] {
  return cyclicGraphs.map((graph, index) => {
    const name = `${id}-cycle-${index}`;
    try {
      ranksOf(likeDask, tasksOf(graph), []);
      return { id: name, failure: `${test}: the cycle is not refused` };
    } catch {
      return { id: name };
    }
  });
}

/** Whether `dask` gives an order at all, and `best` one that keeps no more than the better Dask. */
export function runPeaks(cases: readonly PeakCase[]): PartResult {
  const rows = cases.map((recorded) => {
    const tasks = tasksOf(recorded);
    const graph = indexGraph(tasks);
    const dask = ranksOf(likeDask, tasks, []);
    const least = ranksOf(leastPeak, tasks, leavesOf(tasks));
    const wrong = whyInvalid(recorded, dask) ?? whyInvalid(recorded, least);
    return {
      recorded,
      wrong,
      dask: wrong === undefined ? liveResults(graph, dask) : undefined,
      best: wrong === undefined ? liveResults(graph, least).peak : Infinity,
    };
  });
  const same = rows.filter(({ recorded: { reference }, dask }) => {
    const { peakLive, sumAges } = reference.daskHead;
    return dask?.peak === peakLive && dask.sumOfAges === sumAges;
  });
  const hard = rows.filter(({ recorded }) => recorded.discriminating);
  return {
    part: 'order/graphs',
    cases: rows.map(({ recorded, wrong, best: peak }) => {
      const { id, bestDaskPeak } = recorded;
      if (wrong !== undefined) return { id, failure: wrong };
      if (peak <= bestDaskPeak) return { id };
      return { id, failure: `best keeps ${peak} results, Dask ${bestDaskPeak}` };
    }),
    notes: [
      `the policy dask keeps as many results as Dask HEAD, for as long, on ${same.length} of ${rows.length} graphs`,
      ...table([
        [
          'most results kept on discriminating graphs',
          'best',
          'dask',
          'HEAD',
          '2022.12.1',
          'naive',
        ],
        ...hard.map(({ recorded: { id, reference }, best: peak, dask }) => [
          id,
          peak,
          dask?.peak ?? '-',
          reference.daskHead.peakLive,
          reference.dask2022_12_1.peakLive,
          reference.naiveDfs.peakLive,
        ]),
      ]),
    ],
  };
}

/** Recorded keys with a comma are tuples; tasks are named as Python would print these. */
function tasksOf({ keys, deps, dataRoots = [] }: RecordedGraph): GraphTask[] {
  const data = new Set(dataRoots);
  const names = keys.map((key) => {
    const parts = key.split(',');
    if (parts.length === 1) return key;
    return `(${parts.map((part) => (/^-?\d+$/.test(part) ? part : `'${part}'`)).join(', ')})`;
  });
  return keys.map((key, index) => ({
    key: names[index] as string,
    dependencies: (deps[index] ?? []).map((dependency) => names[dependency] as string),
    runSpec: data.has(key) ? undefined : 'run',
  }));
}

/** What nothing else needs is what the graph is computed for. */
function leavesOf(tasks: readonly GraphTask[]): string[] {
  const needed = new Set(tasks.flatMap(({ dependencies }) => dependencies));
  return tasks.map(({ key }) => key).filter((key) => !needed.has(key));
}

function whyInvalid({ keys, deps }: RecordedGraph, ranks: ArrayLike<number>): string | undefined {
  const taken = new Set(Array.from(ranks));
  if (ranks.length !== keys.length || taken.size !== keys.length) return 'not a permutation';
  const late = deps.findIndex((dependencies, index) =>
    dependencies.some((dependency) => (ranks[dependency] as number) >= (ranks[index] as number)),
  );
  return late < 0 ? undefined : `${keys[late] as string} comes before what it needs`;
}

/** Results kept when each task runs. */
function pressureOf(tasks: readonly GraphTask[], ranks: ArrayLike<number>): number[] {
  const users = new Map<string, number>();
  for (const { dependencies } of tasks) {
    for (const key of dependencies) users.set(key, (users.get(key) ?? 0) + 1);
  }
  let live = 0;
  return tasks
    .map((task, index) => ({ task, rank: ranks[index] as number }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ task: { key, dependencies } }) => {
      const before = live;
      for (const dependency of dependencies) {
        const left = (users.get(dependency) ?? 0) - 1;
        users.set(dependency, left);
        if (left === 0) live--;
      }
      if (users.has(key)) live++;
      return before;
    });
}

function table(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => String(row[column]).length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
      })
      .join('  '),
  );
}
