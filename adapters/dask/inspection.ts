import type { CallTree, StackFrame, TaskProfile } from '../../core/api/index.ts';
import type { DaskContext } from './context.ts';
import { asList, entriesOf, type Fields, isFields, toNumber } from './wire/codec.ts';

/** Between two samples of a worker. Dask: `distributed.worker.profile.interval`. */
const INTERVAL_MS = 10;

/** Prefixes whose samples are asked for, those with the most first. */
const PREFIXES_MAX = 100;

/** Calls outside all tasks: those of the thread and of Dask itself. */
const AROUND =
  /\/(?:threading|concurrent\/futures\/thread|distributed\/(?:utils|worker|threadpoolexecutor|_concurrent_futures_thread)|dask\/(?:_task_spec|core|optimization|utils))\.py$/;

const NONE: Fields = {};

/** The stacks of the tasks that a worker of Dask runs, as other workers answer `inspect` with `call-stacks`. */
export async function callStacksOf(
  address: string,
  wanted: readonly string[] | undefined,
  { pool, keys, cluster }: DaskContext,
): Promise<{ readonly running: readonly object[] }> {
  const wires = wanted === undefined ? null : keys.wiresOf(wanted);
  const stacks = await pool.call(address, 'call_stack', { keys: wires });
  const worker = cluster.workers.get(address);
  const running = entriesOf(stacks).map(([wire, lines]) => {
    const key = keys.textOf(wire);
    const task = cluster.tasks.get(key);
    return {
      key,
      seconds: (task && worker?.executing.get(task)) ?? 0,
      hasSeceded: task !== undefined && worker?.longRunning.has(task) === true,
      isCancelled: task?.processingOn !== worker,
      frames: framesOf(asList(lines) ?? []),
    };
  });
  return { running };
}

/** Python's lines of a stack, whose innermost call is the last. */
function framesOf(lines: readonly unknown[]): readonly StackFrame[] {
  const frames = lines.flatMap((line): readonly StackFrame[] => {
    const [, url = '', at, name = ''] =
      /^\s*File "(.*)", line (\d+), in (.*)/.exec(String(line)) ?? [];
    return at === undefined ? [] : [{ name, url, line: Number(at), column: 0 }];
  });
  const first = frames.findIndex(({ url }) => !AROUND.test(url));
  return frames.slice(Math.max(0, first)).reverse();
}

/**
 * The samples of a worker of Dask, as other workers answer `inspect` with `profile`. Workers keep those of an hour.
 * @param sinceMs - undefined: all that it keeps
 */
export async function taskProfileOf(
  address: string,
  sinceMs: number | undefined,
  { pool }: DaskContext,
): Promise<TaskProfile> {
  const start = sinceMs === undefined ? null : sinceMs / 1000;
  const ask = { start, stop: null };
  const kept = await pool.call(address, 'profile_metadata', { ...ask, start: start ?? 0 });
  const { counts, keys } = kept as Fields;
  const samples = new Map<string, number>();
  for (const entry of asList(keys) ?? []) {
    for (const [prefix, count] of entriesOf(asList(entry)?.[1])) {
      samples.set(String(prefix), (samples.get(String(prefix)) ?? 0) + (toNumber(count) ?? 0));
    }
  }
  const prefixes = [...samples].toSorted(([, a], [, b]) => b - a).slice(0, PREFIXES_MAX);
  const trees = await Promise.all(
    prefixes.map(async ([prefix]) => {
      const tree = await pool.call(address, 'profile', { ...ask, key: prefix, server: false });
      return [prefix, { ...callTreeOf(tree), name: prefix }] as const;
    }),
  );
  const firstS = toNumber(asList(asList(counts)?.[0])?.[0]) ?? Date.now() / 1000;
  return {
    intervalMs: INTERVAL_MS,
    sinceMs: sinceMs ?? 1000 * firstS,
    prefixes: Object.fromEntries(trees),
  };
}

/** A profile of Dask, which counts samples by call, as a tree of calls. */
export function callTreeOf(profile: unknown): CallTree {
  const { count, children, description } = isFields(profile) ? profile : NONE;
  const { name, filename, line_number: line } = isFields(description) ? description : NONE;
  const total = toNumber(count) ?? 0;
  const callees = entriesOf(children).map(([, child]) => callTreeOf(child));
  const [only] = callees;
  return {
    name: typeof name === 'string' ? name : '',
    url: typeof filename === 'string' ? filename : '',
    line: toNumber(line) ?? 0,
    count: total,
    // Some releases do not count the innermost function: an only one has all samples of its caller.
    children: callees.length === 1 && only?.count === 0 ? [{ ...only, count: total }] : callees,
  };
}
