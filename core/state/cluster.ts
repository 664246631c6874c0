import { SmallSet, SteadyMap } from '../util/collections.ts';
import { RankedHeap, RankedSet } from '../util/heaps.ts';
import { SHOWN } from '../util/values.ts';
import {
  groupOfKey,
  type KnownPrefix,
  prefixOfKey,
  RecentGroups,
  type SlotSharing,
  TaskGroup,
  TaskPrefix,
} from './groups.ts';
import { TASK_STATE_NAMES } from './state-names.ts';
import { TaskLimits } from './task-limits.ts';
import { TaskQueue } from './task-queue.ts';
import { TaskState, type WorkerState } from './task.ts';
import { type LostWorker, MemoryState } from './worker.ts';

/** A failure for the history that people look at. */
export interface ErredTask {
  readonly key: string;
  readonly atMs: number;
  readonly erredOn: readonly string[];
  readonly exceptionText: string;
  readonly tracebackText: string;
}

/** The language of a run specification; undefined: any worker will do. */
export type LanguageOf = (runSpec: unknown) => string | undefined;

/** The rules of extensions, as far as they say where a task may run. */
export interface TaskRules {
  /** True when a rule may refuse workers for the task. */
  isFiltered(task: TaskState): boolean;
  /** True when a rule may refuse to let the task move from one worker to another. */
  isTied(task: TaskState): boolean;
  allows(task: TaskState, worker: WorkerState): boolean;
  mayMove(task: TaskState, victim: WorkerState, thief: WorkerState): boolean;
  /** See `ClusterView.whyWaits`. */
  reasonOf(task: TaskState): string | undefined;
}

/** A total order of workers: negative when `a` comes first. It breaks every tie between workers. */
export type WorkerOrder = (a: WorkerState, b: WorkerState) => number;

/** The default: in the order of registration. */
export const byRegistration: WorkerOrder = (a, b) => a.sequence - b.sequence;

/** Prefixes without tasks that are kept, with the durations that they have learnt. */
export const UNUSED_PREFIXES_MAX = 10_000;

/** Names of lost workers beyond this are forgotten, the oldest first. */
const LOST_MAX = 1000;

/** Name of the prefix that sums up those that were dropped. */
export const OTHER_PREFIXES = '(others)';

/**
 * Every container of the scheduler (Dask `SchedulerState`). It holds data and finds things; what
 * changes when is decided in `core/kernel`, and links with two sides are written in `relations.ts`.
 */
export class ClusterState {
  [SHOWN]: object | 'cluster' = 'cluster';
  /** All tasks that are not forgotten. */
  readonly tasks = new SteadyMap<string, TaskState>();
  /** Short cut to processing tasks by run id. */
  readonly runs = new RunTable();
  readonly groups = new Map<string, TaskGroup>();
  readonly prefixes = new Map<string, TaskPrefix>();
  /** The measurements of earlier runs by prefix, the longest unused first. A prefix that is made begins with them. */
  readonly known = new Map<string, KnownPrefix>();

  readonly workers = new Map<string, WorkerState>();
  /** Worker names. */
  readonly aliases = new Map<string, string>();
  /** Addresses by host. */
  readonly hosts = new Map<string, Set<string>>();
  /** Supply of each resource by address. */
  readonly resources = new Map<string, Map<string, number>>();
  /** Workers that went unexpectedly, by name, the one that went last at the end; bounded. */
  readonly lost = new Map<string, LostWorker>();
  readonly clients = new Map<string, ClientState>();
  /** Number of registered workers by the language of their tasks. */
  readonly languages = new Map<string, number>();
  /** Returns the language of a task by its run specification; undefined: languages are not used. */
  languageOf: LanguageOf | undefined = undefined;
  /** Set by the kernel. */
  rules: TaskRules | undefined = undefined;
  /** Workers that have a translation of a result, by task. */
  readonly translations = new Map<TaskState, Set<WorkerState>>();

  /** Registered workers by rank: the order that breaks ties. */
  readonly workersByRank: WorkerState[] = [];
  readonly running = new RankedSet<WorkerState>(this.workersByRank);
  /** Running workers with less work than half of the average, or than their threads. */
  readonly idle = new RankedSet<WorkerState>(this.workersByRank);
  /** Running workers with much more work than the average. */
  readonly saturated = new RankedSet<WorkerState>(this.workersByRank);
  /** Running workers with an open slot by load, the least busy first. */
  readonly openSlots = new RankedHeap<WorkerState>(this.workersByRank);

  /** Tasks in `queued` that wait for an open slot. Those that wait for their limit are in its queue. */
  readonly queued = new TaskQueue();
  readonly limits = new TaskLimits(this);
  /** Tasks in `no-worker`, with the time of entry in milliseconds; oldest first. */
  readonly unrunnable = new Map<TaskState, number>();
  /** Tasks with two or more replicas. */
  readonly replicated = new Set<TaskState>();
  /** Tasks with a request for two or more replicas. */
  readonly replicasWanted = new Set<TaskState>();
  /** Failures, newest first; bounded. */
  readonly erredTasks: ErredTask[] = [];

  /** Tasks that were asked back and have not been answered for. Kept by `relations.ts`. */
  stealsInFlight = 0;
  totalThreads = 0;
  totalMemoryBytes = 0;
  /** The threads of workers that tell their speed, and the sum of the speeds of these threads: exact, as all are integers. */
  private toldThreads = 0;
  private toldSpeed = 0;
  /** Assignments so far: the cursor of the round-robin choice. */
  assignedCount = 0;
  /** Submissions are numbered; older ones come first (see `priorities.ts`). */
  generation = 0;
  lastGenerationMs = -Infinity;
  /** Tasks that are processing and have not seceded. Kept by `relations.ts`. */
  computingCount = 0;
  /** Seconds of work processing in the cluster, without transfers. Kept by `relations.ts`. */
  computeOccupancyS = 0;
  /** Bytes that processing tasks still lack, over all workers. Kept by `relations.ts`. */
  networkBytes = 0;
  /** Since when there has been work and no running worker; undefined when that is not so. */
  noWorkersSinceMs: number | undefined = undefined;

  /** Prefixes without tasks, in the order in which they lost their last one. */
  readonly unusedPrefixes = new Set<TaskPrefix>();
  private readonly recentGroups = new RecentGroups();
  nextTaskId = 0;
  /** Ids of forgotten tasks; the last one is used next. */
  readonly freeTaskIds: number[] = [];
  nextWorkerSequence = 0;

  constructor(
    readonly costs: CostModel,
    private readonly workerOrder: WorkerOrder = byRegistration,
    public nowMs = 0,
  ) {
    this.clients.set(FIRE_AND_FORGET, new ClientState(FIRE_AND_FORGET, nowMs));
  }

  /** The memory of all workers, summed. O(workers). */
  get memory(): MemoryState {
    return MemoryState.sum(this.workersByRank.map(({ memory }) => memory));
  }

  /** Seconds of work in the cluster, transfers included. */
  get totalOccupancyS(): number {
    return this.computeOccupancyS + this.networkBytes / this.costs.bandwidth;
  }

  /** True when nothing is on its way. Not to be confused with {@link idle}. */
  get isIdle(): boolean {
    for (const group of this.groups.values()) if (!group.done) return false;
    return true;
  }

  /** Makes a task in state `released` and registers it with its group. */
  newTask(key: string, groupName?: string, prefixName?: string): TaskState {
    const group = this.groupFor(key, groupName, prefixName);
    const task = new TaskState(key, this.freeTaskIds.pop() ?? this.nextTaskId++, group);
    group.size++;
    group.states.released++;
    group.prefix.stateCounts.released++;
    this.tasks.set(key, task);
    return task;
  }

  /** The reverse of {@link newTask}, for a task that nothing was done with. */
  discardTask(task: TaskState): void {
    const { group } = task;
    group.size--;
    group.states.released--;
    group.prefix.stateCounts.released--;
    this.removeTask(task);
  }

  /** Takes a forgotten task out of the tables, and its group when that was the last one. */
  removeTask(task: TaskState): void {
    this.tasks.delete(task.key);
    this.freeTaskIds.push(task.id);
    if (this.replicasWanted.size > 0) this.replicasWanted.delete(task);
    if (this.limits.size > 0) this.limits.leave(task);
    const { group } = task;
    if (group.states.forgotten < group.size) return;
    this.groups.delete(group.name);
    const { prefix } = group;
    prefix.drop(group);
    if (prefix.groups.size === 0) this.keepUnused(prefix);
    this.recentGroups.clear();
  }

  /** Takes in what earlier runs have found out, for the prefixes that are made later and for those that rest. */
  recall(prefixes: readonly KnownPrefix[]): void {
    for (const known of prefixes) {
      this.known.set(known.name, known);
      const prefix = this.prefixes.get(known.name);
      if (prefix?.processingCount === 0) prefix.recall(known);
    }
  }

  /** The facts that another run should know, the longest unused prefix first. O(prefixes). */
  knowledge(): readonly KnownPrefix[] {
    const all = new Map(this.known);
    const inUse = [...this.prefixes.values()].filter(({ groups }) => groups.size > 0);
    for (const { name, known } of [...this.unusedPrefixes, ...inUse]) {
      if (known === undefined) continue;
      all.delete(name);
      all.set(name, known);
    }
    return [...all.values()].slice(-UNUSED_PREFIXES_MAX);
  }

  /** Forgets all prefixes and what they have learnt. Only when there are no tasks. */
  clearPrefixes(): void {
    this.prefixes.clear();
    this.unusedPrefixes.clear();
  }

  /**
   * Keeps what was learnt about the tasks of a prefix that has none at present. Beyond a bound, the prefix
   * that has been unused for longest is summed up under {@link OTHER_PREFIXES}.
   */
  private keepUnused(prefix: TaskPrefix): void {
    if (prefix.name === OTHER_PREFIXES) return;
    this.unusedPrefixes.add(prefix);
    if (this.unusedPrefixes.size <= UNUSED_PREFIXES_MAX) return;
    for (const oldest of this.unusedPrefixes) {
      this.unusedPrefixes.delete(oldest);
      this.prefixes.delete(oldest.name);
      this.prefixFor(OTHER_PREFIXES).absorb(oldest);
      return;
    }
  }

  /**
   * The language that the task needs, if this leaves out some worker: as long as all speak it, nothing
   * is restricted. O(1).
   */
  languageFor(task: TaskState): string | undefined {
    const { languages, languageOf } = this;
    if (languageOf === undefined || languages.size === 0) return undefined;
    const language = task.runSpec === undefined ? undefined : languageOf(task.runSpec);
    return languages.size === 1 && language !== undefined && languages.has(language)
      ? undefined
      : language;
  }

  /** True when the worker holds a translation of the result, which was made in another language. */
  isTranslation(task: TaskState, worker: WorkerState): boolean {
    const [holder] = task.whoHas.items;
    return holder !== undefined && holder.language !== worker.language;
  }

  /** True when every worker suits the task. O(rules). */
  suitsAnywhere(task: TaskState): boolean {
    const { rules } = this;
    if (task.restrictions !== undefined || this.languageFor(task) !== undefined) return false;
    return rules === undefined || (!rules.isFiltered(task) && !rules.isTied(task));
  }

  /** See `ClusterView.whyWaits`. */
  whyWaits(task: TaskState): string | undefined {
    return this.rules?.reasonOf(task);
  }

  /** See `ClusterView.suits`. */
  suits(task: TaskState, worker: WorkerState, victim?: WorkerState): 'no' | 'tolerably' | 'well' {
    const { restrictions } = task;
    const { rules } = this;
    if ((this.languageFor(task) ?? worker.language) !== worker.language) return 'no';
    if (rules !== undefined) {
      if (!rules.allows(task, worker)) return 'no';
      if (victim !== undefined && !rules.mayMove(task, victim, worker)) return 'no';
    }
    if (restrictions === undefined) return 'well';
    const { workers, names, hosts, resources } = restrictions;
    for (const [resource, amount] of resources ?? []) {
      const offered = worker.resources.get(resource);
      if (offered === undefined || offered < amount) return 'no';
    }
    const isPlaced = (workers?.size ?? 0) + (names?.size ?? 0) + (hosts?.size ?? 0) > 0;
    if (!isPlaced || workers?.has(worker.address) === true) return 'well';
    if (this.isNamed(names, worker) || this.isAmong(hosts, worker)) return 'well';
    return restrictions.loose === true ? 'tolerably' : 'no';
  }

  /**
   * After a failure: the tables hold these tasks and workers and nothing else, and what follows from the links between
   * them is as if there were none. `recount` is to follow when the states of the tasks are known. O(tasks + workers).
   */
  reset(tasks: readonly TaskState[], workers: readonly WorkerState[]): void {
    this.tasks.clear();
    this.freeTaskIds.length = 0;
    const ids = new Set<number>();
    for (const task of tasks) {
      this.tasks.set(task.key, task);
      ids.add(task.id);
    }
    for (let id = this.nextTaskId - 1; id >= 0; id--) if (!ids.has(id)) this.freeTaskIds.push(id);
    for (const table of [this.workers, this.aliases, this.hosts, this.resources, this.languages]) {
      table.clear();
    }
    for (const set of [this.running, this.idle, this.saturated, this.openSlots]) set.clear();
    this.workersByRank.length = 0;
    this.totalThreads = 0;
    this.totalMemoryBytes = 0;
    this.toldThreads = 0;
    this.toldSpeed = 0;
    const endingRuns = new Set<number>();
    for (const worker of workers) {
      this.addWorker(worker);
      if (worker.status === 'running') this.running.add(worker);
      for (const runId of worker.endingRuns) endingRuns.add(runId);
      for (const runId of worker.lingeringRuns) endingRuns.add(runId);
    }
    for (const list of [this.queued, this.unrunnable, this.replicated, this.replicasWanted]) {
      list.clear();
    }
    this.runs.clear();
    this.translations.clear();
    this.limits.reset(tasks, endingRuns);
    this.stealsInFlight = 0;
    this.computingCount = 0;
    this.computeOccupancyS = 0;
    this.networkBytes = 0;
    for (const prefix of this.prefixes.values()) prefix.processingCount = 0;
  }

  /** After {@link reset}: groups count their tasks anew, and those without tasks are gone. O(tasks + groups). */
  recount(tasks: readonly TaskState[]): void {
    for (const group of this.groups.values()) {
      for (const state of TASK_STATE_NAMES) if (state !== 'forgotten') group.states[state] = 0;
    }
    for (const { group, state } of tasks) {
      const { prefix } = group;
      if (!this.groups.has(group.name)) {
        for (const name of TASK_STATE_NAMES) if (name !== 'forgotten') group.states[name] = 0;
      }
      this.groups.set(group.name, group);
      this.prefixes.set(prefix.name, prefix);
      this.unusedPrefixes.delete(prefix);
      prefix.groups.add(group);
      group.states.change(state, 1);
    }
    for (const group of [...this.groups.values()]) {
      const { states, prefix } = group;
      group.size = TASK_STATE_NAMES.reduce((sum, state) => sum + states[state], 0);
      if (states.forgotten < group.size) continue;
      this.groups.delete(group.name);
      prefix.drop(group);
      if (prefix.groups.size === 0) this.keepUnused(prefix);
    }
    this.recentGroups.clear();
  }

  /** True when the worker is in the tables: not another one at the same address, not a former one. */
  isRegistered(worker: WorkerState): boolean {
    return this.workersByRank[worker.rank] === worker;
  }

  nextSequence(): number {
    return this.nextWorkerSequence++;
  }

  /**
   * Registers a worker everywhere but in the sets that depend on its load. O(1) when it comes last in the
   * order, else O(workers).
   */
  addWorker(worker: WorkerState): void {
    this.workers.set(worker.address, worker);
    this.aliases.set(worker.name, worker.address);
    getOrMake(this.hosts, worker.host, () => new Set<string>()).add(worker.address);
    for (const [resource, amount] of worker.resources) this.setResource(worker, resource, amount);
    this.countWorker(worker, 1);
    this.giveRank(worker);
  }

  /** The worker offers that much of a resource. */
  setResource(worker: WorkerState, resource: string, amount: number): void {
    worker.offer(resource, amount);
    const supply = getOrMake(this.resources, resource, () => new Map<string, number>());
    supply.set(worker.address, amount);
  }

  /** Remembers that a worker went unexpectedly. */
  noteLost({ name, executing, processing, memory, memoryLimitBytes }: WorkerState): void {
    const { lost } = this;
    const [during] = executing.size > 0 ? executing.keys() : processing;
    const times = (lost.get(name)?.times ?? 0) + 1;
    const memoryShare = memoryLimitBytes > 0 ? memory.process / memoryLimitBytes : 0;
    lost.delete(name);
    lost.set(name, { times, memoryShare, during: during?.key });
    if (lost.size > LOST_MAX) lost.delete(lost.keys().next().value!);
  }

  /** The reverse of {@link addWorker}; also leaves the sets that depend on load. O(workers). */
  removeWorker(worker: WorkerState): void {
    this.workers.delete(worker.address);
    this.aliases.delete(worker.name);
    const onHost = this.hosts.get(worker.host);
    onHost?.delete(worker.address);
    if (onHost?.size === 0) this.hosts.delete(worker.host);
    for (const resource of worker.resources.keys()) {
      const supply = this.resources.get(resource);
      supply?.delete(worker.address);
      if (supply?.size === 0) this.resources.delete(resource);
    }
    this.countWorker(worker, -1);
    this.running.delete(worker);
    this.idle.delete(worker);
    this.saturated.delete(worker);
    this.rerank(() => this.workersByRank.splice(worker.rank, 1));
    worker.rank = -1;
  }

  /** Keeps the sums over registered workers: threads, memory, languages and speeds. */
  countWorker(worker: WorkerState, change: 1 | -1): void {
    const { identity, threadCount, memoryLimitBytes, language } = worker;
    this.totalThreads += change * threadCount;
    this.totalMemoryBytes += change * memoryLimitBytes;
    const count = (this.languages.get(language) ?? 0) + change;
    if (count > 0) this.languages.set(language, count);
    else this.languages.delete(language);
    const { speed } = identity;
    if (speed === undefined) return;
    this.toldThreads += change * threadCount;
    this.toldSpeed += change * threadCount * speed;
    this.costs.threadSpeed = this.toldSpeed / this.toldThreads;
  }

  /** By its own name, or by that of its host unless a worker has that name. */
  private isNamed(names: ReadonlySet<string> | undefined, { name, host }: WorkerState): boolean {
    if (names === undefined) return false;
    return names.has(name) || (names.has(host) && !this.aliases.has(host));
  }

  /** A host restriction names a host or a worker, and then means that worker's host. */
  private isAmong(hosts: ReadonlySet<string> | undefined, { host }: WorkerState): boolean {
    for (const name of hosts ?? []) {
      const alias = this.aliases.get(name);
      const named = alias === undefined ? undefined : this.workers.get(alias);
      if ((named?.host ?? name) === host) return true;
    }
    return false;
  }

  private groupFor(key: string, groupName?: string, prefixName?: string): TaskGroup {
    const recent = groupName === undefined ? this.recentGroups.find(key) : undefined;
    if (recent !== undefined) return recent;
    const name = groupName ?? groupOfKey(key);
    const group = this.groups.get(name) ?? this.newGroup(name, prefixName ?? prefixOfKey(key));
    if (groupName === undefined) this.recentGroups.remember(key, group);
    return group;
  }

  private newGroup(name: string, prefixName: string): TaskGroup {
    const prefix = this.prefixFor(prefixName);
    this.unusedPrefixes.delete(prefix);
    const group = new TaskGroup(name, prefix);
    this.groups.set(name, group);
    return group;
  }

  private prefixFor(name: string): TaskPrefix {
    return getOrMake(this.prefixes, name, () => {
      const prefix = new TaskPrefix(name, this.costs);
      const known = this.known.get(name);
      if (known !== undefined) prefix.recall(known);
      return prefix;
    });
  }

  private giveRank(worker: WorkerState): void {
    const { workersByRank } = this;
    const last = workersByRank.at(-1);
    if (last === undefined || this.workerOrder(last, worker) < 0) {
      worker.rank = workersByRank.length;
      workersByRank.push(worker);
    } else this.rerank(() => workersByRank.push(worker));
  }

  private rerank(change: () => void): void {
    const sets = [this.running, this.idle, this.saturated];
    const members = sets.map((set) => [...set]);
    const open = [...this.openSlots];
    change();
    this.workersByRank.sort(this.workerOrder);
    this.workersByRank.forEach((worker, rank) => (worker.rank = rank));
    sets.forEach((set, index) => set.rebuild(members[index] as WorkerState[]));
    this.openSlots.clear();
    for (const worker of open) this.openSlots.put(worker, worker.load);
  }
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** The pseudo-client that stops wanting a task when the task reaches memory or fails. */
export const FIRE_AND_FORGET = 'fire-and-forget';

/**
 * Begins the names of clients that the scheduler and its plugins make for themselves, such as `service:published-x`.
 * Peers cannot register under such a name, nor speak in it.
 */
export const SERVICE_PREFIX = 'service:';

/** A peer that wants results: a connected client, or a service such as a published data set. */
export class ClientState {
  [SHOWN]: object | 'client' = 'client';
  /** The set of clients that has this one as its only member; shared by the tasks that it wants. */
  readonly alone: SmallSet<ClientState> = SmallSet.of<ClientState>(this);
  /** Scheduler's clock in milliseconds. */
  lastSeenMs: number;
  /** The keys that it was told are cancelled while it names very many that it wants; undefined: it does not. */
  cancelled: Set<string> | undefined = undefined;

  constructor(
    readonly key: string,
    nowMs: number,
    readonly versions: Readonly<Record<string, string>> = {},
    /** No messages are sent to it. */
    readonly isMute = false,
    readonly wantsWhat: Set<TaskState> = new Set<TaskState>(),
  ) {
    this.lastSeenMs = nowMs;
  }

  toString(): string {
    return `<Client ${this.key}>`;
  }
}

/**
 * The numbers behind every estimate of "how soon could this task start there".
 * One object per cluster, shared by its workers and prefixes; heartbeats move the bandwidth.
 */
export interface CostModel {
  /** Bytes per second between two workers, an average over the cluster. */
  bandwidth: number;
  /** Heartbeats that have brought a measurement of it. */
  bandwidthSamples: number;
  /** Mean speed of the threads of all workers that tell theirs; NaN while none does. */
  threadSpeed: number;
  /** Seconds that a task of an unknown prefix is expected to take. */
  readonly unknownTaskDurationS: number;
  /** Seconds of short tasks that share a slot of a worker; 0: each has its own. */
  readonly slotWorkS: number;
  /** The sharing of slots by tasks of names of which too few have ended. */
  readonly firstOfName: SlotSharing;
  /** Bytes that a result of unknown size is expected to have. */
  readonly defaultDataSize: number;
  /** Seconds by prefix, for operations that are known before the first of them ran. */
  readonly defaultTaskDurationsS: ReadonlyMap<string, number>;
}

/**
 * Tasks in `no-worker` because a policy answered "no worker now" although some may run them, in the order
 * in which they were refused first.
 */
export class RefusedTasks implements Iterable<TaskState> {
  private readonly tasks = new Set<TaskState>();
  /** Goes through all of them, a few with each heartbeat; live, as iterators of sets are. */
  private cursor: IterableIterator<TaskState> | undefined;

  get size(): number {
    return this.tasks.size;
  }

  /** No-op for a task that is already in it, which keeps its place. */
  add(task: TaskState): void {
    this.tasks.add(task);
  }

  delete(task: TaskState): void {
    this.tasks.delete(task);
  }

  clear(): void {
    this.tasks.clear();
    this.cursor = undefined;
  }

  /** The oldest first; live, so that tasks may leave while they are gone through. */
  [Symbol.iterator](): IterableIterator<TaskState> {
    return this.tasks.values();
  }

  /** The number of tasks that have had their turn in this round. O(tasks). */
  get seenCount(): number {
    if (this.cursor === undefined) return 0;
    const seen = this.tasks.size - [...this.cursor].length;
    // It has been gone through, and begins where it was.
    this.skip(seen);
    return seen;
  }

  /** Begins a round in which so many tasks have had their turn. O(count). */
  skip(count: number): void {
    this.cursor = this.tasks.values();
    for (let skipped = 0; skipped < count; skipped++) this.cursor.next();
  }

  /** The next tasks in rotation, at most `count`; fewer at the end of a round. O(count). */
  nextInTurn(count: number): TaskState[] {
    const next: TaskState[] = [];
    while (next.length < count && this.tasks.size > 0) {
      this.cursor ??= this.tasks.values();
      const step = this.cursor.next();
      if (step.done !== true) {
        next.push(step.value);
        continue;
      }
      this.cursor = undefined;
      if (next.length > 0) break;
    }
    return next;
  }
}

const SIZE_MIN = 1 << 8;
const SIZE_MAX = 1 << 16;

/**
 * Finds the task that an answer of a worker is about, by the run id that it carries: one step, where
 * the table of all keys costs several that miss the cache.
 *
 * Run ids are numbered upwards, so their low bits are a place. Of two tasks that claim the same place
 * the newer one has it, and the other one is found by its key: the table is a short cut, never the
 * truth.
 */
export class RunTable {
  private places: (TaskState | undefined)[] = [];
  private mask = SIZE_MIN - 1;

  /** The task has been assigned: its run id is new. */
  add(task: TaskState): void {
    const other = this.places[task.runId & this.mask];
    if (other !== undefined && this.mask < SIZE_MAX - 1) this.grow();
    this.put(task);
  }

  /** The assignment has ended. No-op when the task has no place. */
  delete(task: TaskState): void {
    const place = task.runId & this.mask;
    if (this.places[place] === task) this.places[place] = undefined;
  }

  clear(): void {
    this.places = [];
    this.mask = SIZE_MIN - 1;
  }

  /** The task of that key and run id, if it has its place. */
  find(runId: number, key: string): TaskState | undefined {
    const task = this.places[runId & this.mask];
    return task?.runId === runId && task.key === key ? task : undefined;
  }

  private put(task: TaskState): void {
    const place = task.runId & this.mask;
    // Without holes, so that it stays a plain list.
    while (this.places.length <= place) this.places.push(undefined);
    this.places[place] = task;
  }

  private grow(): void {
    const before = this.places;
    this.places = [];
    this.mask = 2 * this.mask + 1;
    for (const task of before) if (task !== undefined) this.put(task);
  }
}
