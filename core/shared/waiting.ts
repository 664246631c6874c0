import type { ClusterView, LostWorker, PrefixView, TaskView, WorkerView } from '../api/index.ts';
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
  running = new RunningTasks(cluster),
): readonly Sentence[] {
  return [
    ...withoutWorker(cluster),
    ...impairedWorkers(cluster),
    ...dyingWorkers(cluster),
    ...running.stragglers(),
    ...limited(cluster),
    ...inLine(cluster),
    ...blocking(slowCalls),
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
    const isKnown = memoryLimitBytes > 0 && memory.process > 0;
    first = isKnown ? `${name} uses ${share} % of its memory` : `${name} was paused`;
  }
  if (paused > 0)
    yield sentence(`${countOf(paused, 'worker takes', 'workers take')} no new tasks: ${first}.`);
}

/** A worker that had more of its memory limit in use may have died of it. */
const FULL = 0.8;

/** Workers that died and are not back, or die again and again, while there is work: the one that did most often stands for all. */
function* dyingWorkers({ lost, workers, prefixes }: ClusterView): Iterable<Sentence> {
  if (lost.size === 0 || !hasWork(prefixes.values())) return;
  const there = new Set(Array.from(workers.values(), ({ name }) => name));
  let found = 0;
  let worst: readonly [name: string, LostWorker] | undefined;
  for (const entry of lost) {
    const [name, { times }] = entry;
    if (times < 2 && there.has(name)) continue;
    found++;
    if (worst === undefined || times >= worst[1].times) worst = entry;
  }
  if (worst === undefined) return;
  const [name, { times, memoryShare, during }] = worst;
  const memory =
    memoryShare >= FULL
      ? `, at last with ${Math.round(100 * memoryShare)} % of its memory in use`
      : '';
  const task = during === undefined ? '' : ` while it had ${during}`;
  const after = there.has(name) ? '' : ', and is not back';
  const others = found > 1 ? ` So did ${countOf(found - 1, 'other worker')}.` : '';
  yield sentence(
    `${name} died${times > 1 ? ` ${times} times` : ''}${memory}${task}${after}.${others}`,
    ...(during === undefined ? [] : [during]),
  );
}

function hasWork(prefixes: Iterable<PrefixView>): boolean {
  for (const { states } of prefixes)
    if (states.waiting + states.queued + states.processing + states['no-worker'] > 0) return true;
  return false;
}

/** True for a task that has run far longer than enough others of its prefix took. */
function isStraggling({ prefix: { known } }: TaskView, seconds: number): boolean {
  if (seconds < STRAGGLER_S || known === undefined || known.count < COMPARED_WITH) return false;
  return seconds >= STRAGGLER_TIMES * known.durationS;
}

/** Running tasks that are named. */
const RUNS_NAMED = 3;

/** Tasks that run: when one has ended since the last heartbeat, the next one does; those that a thread was given ahead wait. */
export function runningCount({
  executing,
  processing,
  threadCount,
  longRunning,
}: WorkerView): number {
  return Math.min(executing.size, processing.size, threadCount + longRunning.size);
}

type Run = readonly [task: TaskView, seconds: number, worker: string];

/** The tasks that run, as their workers told last. */
export class RunningTasks {
  private count = 0;
  /** Those that have run longest, in falling order. */
  private readonly longest: Run[] = [];
  /** Tasks that take far longer than those of their prefix took: the rest may wait for them. */
  private straggling = 0;
  private worst: Run | undefined;
  /** Names of their prefixes. */
  readonly overdue = new Set<string>();

  /** O(workers + running tasks) */
  constructor({ workers }: ClusterView) {
    let worstS = -Infinity;
    for (const worker of workers.values()) {
      const { name, executing, processing } = worker;
      let unseen = runningCount(worker);
      this.count += unseen;
      for (const [task, seconds] of executing) {
        if (!processing.has(task)) continue;
        unseen--;
        this.add([task, seconds, name]);
        if (!isStraggling(task, seconds)) continue;
        this.straggling++;
        this.overdue.add(task.prefix.name);
        const excessS = seconds - (task.prefix.known?.durationS ?? 0);
        if (excessS <= worstS) continue;
        worstS = excessS;
        this.worst = [task, seconds, name];
      }
      // Those that have begun since are the oldest of the others.
      for (const task of processing) {
        if (unseen <= 0 || this.longest.length === RUNS_NAMED) break;
        if (executing.has(task)) continue;
        unseen--;
        this.add([task, 0, name]);
      }
    }
  }

  private add(run: Run): void {
    const { longest } = this;
    const [, seconds] = run;
    if (longest.length === RUNS_NAMED && seconds <= longest[RUNS_NAMED - 1]![1]) return;
    const at = longest.findIndex(([, other]) => other < seconds);
    longest.splice(at < 0 ? longest.length : at, 0, run);
    if (longest.length > RUNS_NAMED) longest.pop();
  }

  /** Says how many run, and names the longest. */
  get sentence(): Sentence {
    const { count, longest } = this;
    if (count === 0) return sentence('No task runs.');
    const named = longest.map(([{ key }, seconds, worker]) => {
      return `${key} on ${worker}${seconds > 0 ? ` for ${secondsText(seconds)}` : ''}`;
    });
    const about = count > longest.length ? ', the longest of them' : '';
    return sentence(
      `${countOf(count, 'task runs', 'tasks run')}${about}: ${named.join(', ')}.`,
      ...longest.map(([{ key }]) => key),
    );
  }

  /** Names the one that is furthest beyond what is usual, for all that are. */
  *stragglers(): Iterable<Sentence> {
    const { straggling, worst } = this;
    if (worst === undefined) return;
    const [{ key, prefix }, seconds, worker] = worst;
    const { count = 0, durationS = 0 } = prefix.known ?? {};
    const such = straggling === 1 ? '' : 'such as ';
    yield sentence(
      `${countOf(straggling, 'task runs', 'tasks run')} far longer than usual: ${such}${key} for ${secondsText(seconds)} on ${worker}, where ${count} before took ${secondsText(durationS)}.`,
      key,
    );
  }
}

function* blocking(slowCalls: ReadonlyMap<string, number>): Iterable<Sentence> {
  for (const [subject, longestMs] of slowCalls)
    yield sentence(
      `The scheduler stood still for ${Math.round(longestMs)} ms lately, because of ${subject}.`,
    );
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
