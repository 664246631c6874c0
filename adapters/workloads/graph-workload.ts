import { YardmasterError } from '../../core/api/index.ts';
import { type Workload, WorkloadBuilder } from './workload.ts';

/** One task of a graph with what it costs. */
export interface CostedTask {
  readonly key: string;
  /** Keys of other tasks. Default none. */
  readonly needs?: readonly string[];
  /** Seconds. Default 0. */
  readonly durationS?: number;
  /** Bytes of its result. Default 0. */
  readonly nbytes?: number;
  /** The kind of task. Default: derived from the key. */
  readonly prefix?: string;
}

/**
 * Makes a workload of any graph. The tasks may come in any order. `wanted` are the keys whose results a client asks
 * for, by default those that no task needs; `source` is what messages name, a file for example.
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with source and task
 */
export function graphWorkload(
  name: string,
  tasks: readonly CostedTask[],
  { wanted, source = name }: { readonly wanted?: readonly string[]; readonly source?: string } = {},
): Workload {
  const byKey = new Map<string, CostedTask>();
  for (const task of tasks) {
    if (byKey.has(task.key)) throw invalid(source, task.key, 'is there twice; rename one of both');
    checkCost(source, task, 'durationS');
    checkCost(source, task, 'nbytes');
    byKey.set(task.key, task);
  }
  if (byKey.size === 0) throw invalid(source, undefined, 'has no tasks');
  const builder = new WorkloadBuilder();
  const numbers = new Map<string, number>();
  const needed = new Set<string>();
  for (const key of inOrder(source, byKey)) {
    const { needs = [], durationS = 0, nbytes = 0, prefix } = byKey.get(key) as CostedTask;
    const unique = [...new Set(needs)];
    for (const need of unique) needed.add(need);
    const kind = prefix === undefined ? {} : { prefix, group: prefix };
    const before = unique.map((need) => numbers.get(need) as number);
    numbers.set(key, builder.add(key, before, { durationS, nbytes }, kind));
  }
  const keys = wanted ?? [...byKey.keys()].filter((key) => !needed.has(key));
  const numbersWanted = keys.map((key) => {
    const number = numbers.get(key);
    if (number === undefined) throw invalid(source, key, 'is wanted, and is no task of the graph');
    return number;
  });
  return builder.build(name, numbersWanted);
}

/** A task on the way down to what it needs, and how many of its needs were looked at. */
interface Step {
  readonly key: string;
  readonly needs: readonly string[];
  at: number;
}

/** Keys, each after those that it needs; otherwise in the order in which they came. O(tasks + needs). */
function* inOrder(source: string, byKey: ReadonlyMap<string, CostedTask>): Generator<string> {
  const state = new Map<string, 'open' | 'done'>();
  const path: Step[] = [];
  const enter = (key: string): void => {
    state.set(key, 'open');
    path.push({ key, needs: byKey.get(key)?.needs ?? [], at: 0 });
  };
  for (const start of byKey.keys()) {
    if (!state.has(start)) enter(start);
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const need = step.needs[step.at++];
      if (need === undefined) {
        state.set(step.key, 'done');
        path.pop();
        yield step.key;
      } else if (!byKey.has(need)) {
        throw invalid(source, step.key, `needs "${need}", and there is no such task; add it`);
      } else if (state.get(need) === 'open') {
        throw cycleError(source, [...path.map(({ key }) => key), need]);
      } else if (!state.has(need)) enter(need);
    }
  }
}

/** @param path - keys, each of which needs the next one; the last one is there before as well */
function cycleError(source: string, path: readonly string[]): YardmasterError {
  const cycle = path.slice(path.indexOf(path.at(-1) as string));
  return new YardmasterError(
    'ERR_GRAPH_CYCLE',
    `${source}: the graph has a cycle: ${cycle.join(' -> ')}. Each of these depends on the next; break one link.`,
    { source, cycle },
  );
}

/** Thirty years, and what numbers hold exactly: beyond, a clock does not advance by what a task takes. */
export const COST_MAX = { durationS: 1e9, nbytes: Number.MAX_SAFE_INTEGER } as const;

function checkCost(source: string, task: CostedTask, field: 'durationS' | 'nbytes'): void {
  const value = task[field] ?? 0;
  if (Number.isFinite(value) && value >= 0 && value <= COST_MAX[field]) return;
  throw invalid(
    source,
    task.key,
    `has the ${field} ${value}; it must be a number from 0 to ${COST_MAX[field]}`,
  );
}

function invalid(source: string, key: string | undefined, what: string): YardmasterError {
  const subject = key === undefined ? 'the graph' : `the task "${key}"`;
  return new YardmasterError('ERR_GRAPH_INVALID', `${source}: ${subject} ${what}`, { source, key });
}
