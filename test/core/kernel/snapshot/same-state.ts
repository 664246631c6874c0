import type { TaskLimits } from '../../../../core/state/task-limits.ts';
import type { SchedulerKernel } from '../../../../core/kernel/kernel.ts';

/**
 * What may differ between two states that decide alike: the ways in and out, what is computed anew for each stimulus,
 * caches, and where something stands in a data structure whose order is total.
 */
const MAY_DIFFER: ReadonlySet<string> = new Set([
  ...['ports', 'story', 'outbox', 'inputs', 'locations', 'watchers', 'reached', 'stimulusId'],
  ...[
    'sliceEnd',
    'rules',
    'changedWorker',
    'hasFreedWorker',
    'hasNewMetrics',
    'isQueueRefused',
    'killTimeoutMs',
    'lost',
  ],
  ...['runSpec', 'graphIndex', 'recentGroups', 'runs', 'latestDependency', 'cursor', 'options'],
  ...['place', 'copies', 'optionalFields', 'firstRunId', 'isHandled', 'stepping'],
]);

const SHARED: ReadonlySet<string> = new Set(['Object', 'Array', 'Map', 'Set', 'SmallSet']);

/** Classes that are compared by what they say. */
const BY_CONTENT: Readonly<Record<string, (object: never) => unknown>> = {
  TaskQueue: (queue: { sorted(): object[] }) => queue.sorted(),
  RankedHeap: (heap: { sorted(): object[]; keyOf(member: object): number }) =>
    heap.sorted().map((member) => [member, heap.keyOf(member)]),
  ProcessingList: (list: Iterable<object>) => [...list],
  ReplicaList: (list: Iterable<object>) => [...list],
  RankedSet: (set: Iterable<object>) => [...set],
  LazySet: (set: Iterable<unknown>) => [...set],
  RefusedTasks: (tasks: Iterable<object> & { seenCount: number }) => [...tasks, tasks.seenCount],
  SteadySet: (set: Set<unknown>) => [...set],
  SteadyMap: (map: Map<unknown, unknown>) => [...map],
  // Runs that were taken back are looked up by their id; in which order they are there says nothing.
  // A limit that no task has is there until its rate has recovered, and may be longer.
  TaskLimits: (limits: TaskLimits) => [
    [...limits].filter((limit) => !limits.isKept(limit)),
    [...limits.open],
    [...limits['endingRuns']].toSorted(([one], [other]) => one - other),
  ],
  // What a worker last said it executes may be forgotten; nothing looks there for a forgotten task.
  Map: (map: Map<unknown, unknown>) =>
    [...map].filter(([key]) => !(isObject(key) && isForgotten(key))),
  Set: (set: Set<unknown>) => [...set],
};

/** Where the states of two kernels differ, objects compared by what they are linked to; undefined: nowhere. */
export function differenceOf(one: SchedulerKernel, other: SchedulerKernel): string | undefined {
  return compare(scopeOf(one), scopeOf(other), 'scope', new Map());
}

function scopeOf(kernel: SchedulerKernel): unknown {
  return (kernel as unknown as { scope: unknown }).scope;
}

function compare(
  a: unknown,
  b: unknown,
  path: string,
  met: Map<object, object>,
): string | undefined {
  if (!isObject(a) || !isObject(b)) {
    return Object.is(a, b) || a === b ? undefined : `${path}: ${String(a)}, ${String(b)}`;
  }
  const before = met.get(a);
  if (before !== undefined) return before === b ? undefined : `${path}: another object`;
  const name = nameOf(a);
  if (name !== nameOf(b)) return `${path}: a ${name}, a ${nameOf(b)}`;
  if (isForgotten(a) && isForgotten(b)) return undefined;
  // Who shares a list does not matter: none is changed that is shared.
  if (!SHARED.has(name)) met.set(a, b);
  const content = BY_CONTENT[name];
  if (content !== undefined)
    return compareLists(content(a as never), content(b as never), path, met);
  if (Array.isArray(a)) return compareLists(a, b, path, met);
  for (const key of namesOf(a)) {
    if (MAY_DIFFER.has(key)) continue;
    const found = compare(a[key], b[key], `${path}.${key}`, met);
    if (found !== undefined) return found;
  }
  return undefined;
}

function compareLists(
  a: unknown,
  b: unknown,
  path: string,
  met: Map<object, object>,
): string | undefined {
  const [one, other] = [a as readonly unknown[], b as readonly unknown[]];
  if (one.length !== other.length) return `${path}: ${one.length} entries, ${other.length}`;
  for (const [index, item] of one.entries()) {
    const found = compare(item, other[index], `${path}[${index}]`, met);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Own fields, and what tasks answer by way of getters. */
function namesOf(object: object): string[] {
  if (object.constructor.name !== 'TaskState') return Object.keys(object);
  const getters = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(object)));
  const rare = getters.filter(([, { get, set }]) => get !== undefined && set !== undefined);
  return [...Object.keys(object), ...rare.map(([name]) => name)];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Objects without a prototype have none. */
function nameOf(object: { readonly constructor?: { readonly name: string } }): string {
  return object.constructor?.name ?? '';
}

function isForgotten(object: Record<string, unknown>): boolean {
  return object.constructor.name === 'TaskState' && object['state'] === 'forgotten';
}
