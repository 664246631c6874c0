import type { ClusterView, TaskView, WorkerView } from '../api/index.ts';
import { EVENT_LOOP_RESOURCE } from '../util/event-loop.ts';
import { secondsText } from '../util/units.ts';
import { countOf, outOf } from '../util/values.ts';

/** A sentence, and the keys of tasks in it, in their order. */
export interface Sentence {
  readonly text: string;
  readonly keys: readonly string[];
}

/** Tasks that are looked at for what they ask for, or wait for. */
const LOOKED_AT = 100;
/** Limits that have a sentence of their own. */
const LIMITS_NAMED = 3;

/** A running task is far longer than usual from so many seconds, and times the average of so many others, on. */
const STRAGGLER_S = 5;
const STRAGGLER_TIMES = 5;
const COMPARED_WITH = 5;

const sentence = (text: string, ...keys: readonly string[]): Sentence => ({ text, keys });

/**
 * Explains what waits, and why: one sentence each, the most urgent first. O(workers + running tasks + prefixes + limits).
 * @param slowCalls - by extension, the longest in milliseconds
 */
export function waitingIn(
  cluster: ClusterView,
  slowCalls: ReadonlyMap<string, number> = new Map(),
): readonly Sentence[] {
  return [
    ...withoutWorker(cluster),
    ...impairedWorkers(cluster),
    ...stragglers(cluster),
    ...blocking(slowCalls),
    ...limited(cluster),
    ...inLine(cluster),
  ];
}

function* withoutWorker(cluster: ClusterView): Iterable<Sentence> {
  const { workers, unrunnable } = cluster;
  if (workers.size === 0) {
    let waiting = unrunnable.size + cluster.queued.size;
    for (const limit of cluster.limits) waiting += limit.queued.size;
    if (waiting > 0)
      yield sentence(
        `${countOf(waiting, 'task waits', 'tasks wait')} for the first worker: start one.`,
      );
    return;
  }
  const reasons = new Map<string, { readonly example: TaskView; tasks: number }>();
  let looked = 0;
  for (const task of unrunnable.keys()) {
    if (looked++ === LOOKED_AT) break;
    const reason = cluster.whyWaits(task) ?? 'the policy gives it to no worker';
    const known = reasons.get(reason);
    if (known === undefined) reasons.set(reason, { example: task, tasks: 1 });
    else known.tasks++;
  }
  for (const [reason, { example, tasks }] of reasons) {
    const more = unrunnable.size > LOOKED_AT ? ' at least' : '';
    const { key } = example;
    yield sentence(
      `No worker takes${more} ${countOf(tasks, 'task')}, such as ${key}: ${reason}.`,
      key,
    );
  }
}

function* impairedWorkers({ workers }: ClusterView): Iterable<Sentence> {
  let paused = 0;
  let first = '';
  for (const { name, status, memory, memoryLimitBytes } of workers.values()) {
    if (status !== 'paused') continue;
    if (paused++ > 0) continue;
    const share = Math.round((100 * memory.process) / memoryLimitBytes);
    first = memoryLimitBytes > 0 ? `${name} uses ${share} % of its memory` : `${name} was paused`;
  }
  if (paused > 0)
    yield sentence(`${countOf(paused, 'worker takes', 'workers take')} no new tasks: ${first}.`);
}

/** True for a task that has run far longer than enough others of its prefix took. */
export function isStraggling({ prefix: { known } }: TaskView, seconds: number): boolean {
  if (seconds < STRAGGLER_S || known === undefined || known.count < COMPARED_WITH) return false;
  return seconds >= STRAGGLER_TIMES * known.durationS;
}

/** Running tasks that take far longer than those of their prefix took: the rest may wait for them. */
function* stragglers({ workers }: ClusterView): Iterable<Sentence> {
  let [found, worst, text, key] = [0, 0, '', ''];
  for (const { name, executing } of workers.values()) {
    for (const [task, seconds] of executing) {
      if (!isStraggling(task, seconds)) continue;
      const { count = 0, durationS = 0 } = task.prefix.known ?? {};
      found++;
      if (seconds - durationS <= worst) continue;
      [worst, key] = [seconds - durationS, task.key];
      text = `${key} for ${secondsText(seconds)} on ${name}, where ${count} before took ${secondsText(durationS)}`;
    }
  }
  if (found === 0) return;
  const such = found === 1 ? '' : 'such as ';
  yield sentence(
    `${countOf(found, 'task runs', 'tasks run')} far longer than usual: ${such}${text}.`,
    key,
  );
}

function* blocking(slowCalls: ReadonlyMap<string, number>): Iterable<Sentence> {
  for (const [subject, longestMs] of slowCalls)
    yield sentence(`Everything waited for ${subject}, lately for ${Math.round(longestMs)} ms.`);
}

function* limited({ limits, workers }: ClusterView): Iterable<Sentence> {
  if (workers.size === 0) return;
  let named = 0;
  let others = 0;
  for (const { name, max, runningCount, queued, intervalMs } of limits) {
    if (queued.size === 0) continue;
    if (named++ >= LIMITS_NAMED) {
      others += queued.size;
      continue;
    }
    const waiting = countOf(queued.size, 'task waits', 'tasks wait');
    const isRate = intervalMs !== undefined && runningCount < max;
    const why = isRate
      ? `one starts every ${secondsText(intervalMs / 1000)}, all within ${secondsText((queued.size * intervalMs) / 1000)}`
      : `${outOf(runningCount, max)} run`;
    const key = queued.peek()?.key ?? '';
    yield sentence(`${waiting} for the limit ${name}, ${key} first: ${why}.`, key);
  }
  if (others > 0)
    yield sentence(`${countOf(others, 'task waits', 'tasks wait')} for other limits.`);
}

function* inLine(cluster: ClusterView): Iterable<Sentence> {
  const { queued, totalThreads, prefixes, workers } = cluster;
  let waiting = 0;
  for (const { states } of prefixes.values()) waiting += states.waiting;
  if (queued.size > 0 && workers.size > 0) {
    const next = queued.peek();
    const first = next === undefined ? '' : `, ${next.key} first`;
    yield sentence(
      `${countOf(queued.size, 'task is', 'tasks are')} queued until one of ${countOf(totalThreads, 'thread')} is free${first}.`,
      ...(next === undefined ? [] : [next.key]),
    );
  }
  yield* behindOthers(cluster);
  if (waiting === 0) return;
  const pair = waitingPair(workers.values());
  const wait = `${countOf(waiting, 'task waits', 'tasks wait')} for the results of others`;
  yield pair === undefined
    ? sentence(`${wait}.`)
    : sentence(`${wait}, such as ${pair[0]} for ${pair[1]}.`, ...pair);
}

/** Work that its worker has no thread for yet, with the worker that has the most when threads elsewhere have nothing. */
function* behindOthers(cluster: ClusterView): Iterable<Sentence> {
  let [behind, idle, most] = [0, 0, 0];
  let fullest: WorkerView | undefined;
  for (const worker of cluster.workers.values()) {
    const rest = worker.processing.size - worker.threadCount;
    if (rest < 0) idle -= rest;
    else behind += rest;
    if (rest > most) [most, fullest] = [rest, worker];
  }
  if (fullest === undefined) return;
  const start = `${countOf(behind, 'task waits', 'tasks wait')} on the workers behind those that run`;
  if (idle === 0) {
    yield sentence(`${start}.`);
    return;
  }
  const where = `${most} of them on ${fullest.name}, while ${idle} of ${cluster.totalThreads} threads are idle`;
  const bound = boundTask(cluster, fullest);
  yield bound === undefined
    ? sentence(`${start}, ${where}.`)
    : sentence(
        `${start}, ${where}: no idle worker may run tasks such as ${bound.key}, because of ${holderOf(bound) ?? 'a rule'}.`,
        bound.key,
      );
}

/** A task that waits on this worker and that none with an idle thread may run. O(workers), and a bounded number of tasks. */
function boundTask(
  cluster: ClusterView,
  { processing, executing }: WorkerView,
): TaskView | undefined {
  let looked = 0;
  for (const task of processing) {
    if (looked++ === LOOKED_AT) return undefined;
    if (executing.has(task) || cluster.suitsAnywhere(task)) continue;
    // One is enough: others of the same kind wait for the same reason.
    for (const worker of cluster.running) {
      const isIdle = worker.processing.size < worker.threadCount;
      if (isIdle && cluster.suits(task, worker) !== 'no') return undefined;
    }
    return task;
  }
  return undefined;
}

/** The reason that keeps a task from most workers: where it may run, a resource that it occupies, or a limit. */
export function holderOf({ restrictions, limit }: TaskView): string | undefined {
  if (limit !== undefined) return `the limit ${limit.name}`;
  if (restrictions === undefined || restrictions.loose === true) return undefined;
  const { workers, names, hosts, resources } = restrictions;
  const occupied = [...(resources?.keys() ?? [])].find((name) => name !== EVENT_LOOP_RESOURCE);
  if (occupied !== undefined) return `the resource ${occupied}`;
  const isBound = workers !== undefined || names !== undefined || hosts !== undefined;
  return isBound ? 'a restriction to certain workers' : undefined;
}

/** A task that waits for one that is being processed, and that one, if it is found soon. */
function waitingPair(
  workers: Iterable<WorkerView>,
): readonly [waiting: string, input: string] | undefined {
  let looked = 0;
  for (const { processing } of workers) {
    for (const input of processing) {
      for (const { state, key } of input.dependents) {
        if (state === 'waiting') return [key, input.key];
        if (looked++ >= LOOKED_AT) return undefined;
      }
      if (looked++ >= LOOKED_AT) return undefined;
    }
  }
  return undefined;
}
