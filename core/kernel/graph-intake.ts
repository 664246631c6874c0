import type { GraphTask, UpdateGraph } from '../messages/stimulus.ts';
import { LOST_INPUT, UNKNOWN_KEY } from '../messages/to-client.ts';
import { type ClusterState, ClientState } from '../state/cluster.ts';
import { addWant, endKeepAlive, keepAlive } from '../state/relations.ts';
import { isDone } from '../state/state-names.ts';
import { byPriority, isSortedByPriority, type TaskState } from '../state/task.ts';
import { sortInSlices } from '../util/steps.ts';
import { GraphTable, isPlaceholder, OUTSIDE, showGraph } from './graph-table.ts';
import { unassignedSince } from './on-membership.ts';
import { schedulerFailure } from './ports.ts';
import { findRanks } from './priorities.ts';
import type { CancellationCause, KernelScope } from './scope.ts';
import { releaseUnwanted, releaseWants, reportState } from './task-effects.ts';
import { TaskLinker } from './task-linker.ts';
import { settle } from './transitions.ts';

// How a graph is taken in: enlist → resolve → walk → cull → order → link → start. A small graph is taken in
// by the stimulus that brings it. A large one is taken in by slices, between which other stimuli are
// handled; it comes to the same.

/** Everything between two `yield`s belongs to one stimulus. */
type Steps = Generator<undefined, void, undefined>;

const NO_PAUSES: readonly undefined[] = [];

/**
 * The intake of one graph. Until all tasks of a large graph are there, none of them starts, and no other
 * submission can build on those that have no definition yet. A pseudo-client that is in no table keeps
 * everything alive that the graph names, so nothing of it is forgotten meanwhile; when that ends, only the
 * tasks that need a task keep it. Its tasks are not listed once more: a million tasks in a set are 40 MB,
 * and are hashed twice.
 */
export class GraphIntake {
  /** The pseudo-client that keeps alive all that the graph names; undefined for a graph that one stimulus takes in. */
  readonly holder: ClientState | undefined;
  readonly steps: Steps;
  private readonly sliceTasks: number;
  private walk: GraphWalk | undefined;
  private readonly heldOutside: TaskState[] = [];
  /** The list of the walk that these come from, and how many of it there are. */
  private outside: readonly TaskState[] | undefined;
  private outsideSeen = 0;
  private linker: TaskLinker | undefined;
  /** The tasks that have started, the best first; undefined: none yet. */
  private started: readonly TaskState[] | undefined;
  /** Keys that were cancelled meanwhile, with the reason. */
  private cancelled: Map<string, CancellationCause> | undefined;

  constructor(
    private readonly scope: KernelScope,
    private readonly stimulus: UpdateGraph,
    readonly client: ClientState,
    isSliced: boolean,
  ) {
    this.sliceTasks = isSliced ? scope.options.sliceTransitions : Infinity;
    if (isSliced) {
      const key = `a graph of ${client.key}`;
      this.holder = new ClientState(key, scope.nowMs, {}, true);
    }
    this.steps = isSliced ? this.takeInAsFirst() : this.takeIn();
  }

  get stimulusId(): string {
    return this.stimulus.stimulusId;
  }

  get keys(): readonly string[] {
    return this.stimulus.keys;
  }

  /** Every client has to give these up, so this client does not get them. */
  cancel(tasks: Iterable<TaskState>, cause: CancellationCause): void {
    const { holder, client } = this;
    for (const task of tasks) {
      const isHeld = holder !== undefined && task.whoWants.has(holder);
      if (!isHeld && !client.wantsWhat.has(task)) continue;
      this.cancelled ??= new Map();
      this.cancelled.set(task.key, cause);
    }
  }

  /** A stimulus failed: nothing of it is continued. The repair sees to the tasks that it has begun. */
  abandon(): void {
    this.end();
    this.walk?.restoreIndices();
  }

  /** The client is gone, or everything is: what nothing else needs is forgotten. O(tasks). */
  drop(): void {
    this.end();
    this.release();
  }

  private end(): void {
    const { agenda, intakes } = this.scope;
    const index = intakes.indexOf(this);
    if (index >= 0) intakes.splice(index, 1);
    for (const work of agenda) if (work.rest === this.steps) work.rest = undefined;
  }

  private release(): void {
    const { scope } = this;
    const begun = this.started !== undefined ? [] : (this.linker?.begun ?? []);
    const held = [...(this.walk?.states ?? []), ...this.heldOutside].filter((task) =>
      this.free(task),
    );
    // Other clients may want what will never be defined.
    for (const task of held) if (isPlaceholder(task)) scope.recommend(task, 'forgotten');
    settle(scope);
    for (const task of begun) {
      const isReady = task.state === 'released' && task.runSpec !== undefined;
      if (isReady && task.isNeeded) scope.recommend(task, 'waiting');
    }
    settle(scope);
  }

  private *takeInAsFirst(): Steps {
    yield* this.takeIn();
    this.scope.intakes.shift();
  }

  private *takeIn(): Steps {
    const { scope, client, stimulus, holder } = this;
    const { tasks, keys } = stimulus;
    const { length } = tasks;
    const isAmidAnother = holder === undefined && scope.intakes.length > 0;
    const walk = new GraphWalk(scope.cluster, tasks, keys, isAmidAnother);
    this.walk = walk;
    yield* this.inSlices(length, (from, to) => this.enlist(walk, from, to));
    yield* this.inSlices(length, (from, to) => walk.resolve(from, to));
    while (!this.advanceWalk(walk)) yield;
    if (walk.hasCulled) yield* this.inSlices(length, (from, to) => this.cull(walk, from, to));
    if (walk.cycle === undefined) {
      reportLost(scope, client, walk.lost);
      yield* this.link(walk);
    } else {
      refuseCycle(scope, client, keys, walk.cycle);
      walk.restoreIndices();
    }
    if (holder === undefined) return;
    yield* this.endHolds(walk);
    scope.holdsQueue = false;
  }

  /** The steps from the order on. */
  private *link(walk: GraphWalk): Steps {
    const { scope, client, stimulus, holder } = this;
    const { keys, order } = walk;
    const isSliced = holder !== undefined;
    const ranks = order.length === 0 ? [] : yield* findRanks(scope, stimulus, walk, isSliced);
    const linker = new TaskLinker(scope, stimulus, walk, ranks);
    this.linker = linker;
    if (isSliced) yield;
    yield* this.inSlices(order.length, (from, to) => linker.take(from, to));
    const { taken } = linker;
    if (taken !== undefined) {
      this.release();
      walk.restoreIndices();
      refuseTaken(scope, client, keys, taken);
      return;
    }
    linker.finish();
    walk.restoreIndices();
    if (stimulus.firstRunIds !== undefined) noteFirstRuns(scope, stimulus, stimulus.firstRunIds);
    const settled: TaskState[] = [];
    yield* this.inSlices(keys.length, (from, to) => this.want(keys, from, to, settled));
    const { touched, fresh } = linker;
    if (fresh !== undefined) showGraph(scope, fresh);
    // A depth-first order comes out of the walk sorted already.
    const sorted = isSortedByPriority(touched)
      ? touched
      : yield* sortInSlices(touched, byPriority, this.sliceTasks);
    if (isSliced) yield;
    reportSubmitted(scope, client, keys, touched);
    this.start(sorted);
    if (isSliced) {
      const work = scope.work();
      // The starts go on as long as any of them is left.
      do yield;
      while (work.leftCount > 0);
    }
    // What gets its result or its failure from now on is reported by its transition.
    yield* this.inSlices(settled.length, (from, to) => {
      for (const task of settled.slice(from, to)) reportState(scope, task, client);
    });
  }

  private enlist(walk: GraphWalk, from: number, to: number): void {
    const { holder } = this;
    walk.enlist(from, to);
    if (holder === undefined) return;
    for (let index = from; index < to; index++) keepAlive(holder, walk.states[index] as TaskState);
  }

  /** Returns whether the walk is over. */
  private advanceWalk(walk: GraphWalk): boolean {
    const isOver = walk.advance(this.sliceTasks);
    if (this.holder !== undefined) this.holdOutside(this.holder, walk);
    return isOver;
  }

  /** Takes out what the requested keys do not need. */
  private cull(walk: GraphWalk, from: number, to: number): void {
    const { scope, holder } = this;
    for (const task of walk.cull(from, to, holder)) {
      this.free(task);
      if (holder !== undefined && isPlaceholder(task)) scope.recommend(task, 'forgotten');
    }
  }

  /** @param settled - receives the wanted tasks whose result or failure was there before */
  private want(keys: readonly string[], from: number, to: number, settled: TaskState[]): void {
    const { scope, client, cancelled } = this;
    for (let index = from; index < to; index++) {
      const key = keys[index] as string;
      const task = scope.cluster.tasks.get(key);
      const cause = cancelled?.get(key);
      if (task === undefined || cause !== undefined) {
        scope.outbox.toClient(client, {
          op: 'cancelled-keys',
          keys: [key],
          ...(cause ?? { reason: LOST_INPUT }),
        });
        continue;
      }
      addWant(client, task);
      if (isDone(task.state)) settled.push(task);
    }
  }

  /** The best one last, so that it is followed first. */
  private start(tasks: readonly TaskState[]): void {
    const { scope } = this;
    this.started = tasks;
    const isStartable = ({ state, runSpec }: TaskState): boolean =>
      state === 'released' && runSpec !== undefined;
    // As a rule all are: a million tasks are not listed twice.
    const startable = tasks.every(isStartable) ? tasks : tasks.filter(isStartable);
    scope.recommendAll(startable.toReversed(), 'waiting');
    settle(scope);
    // What is queued comes after what starts with the same graph.
    if (this.holder !== undefined) scope.holdsQueue = true;
  }

  /**
   * Ends the holds. The task that started last and is not needed is given up first, as in a graph that is taken in at
   * once.
   */
  private *endHolds({ states }: GraphWalk): Steps {
    for (const held of [this.started ?? [], states, this.heldOutside]) {
      const { length } = held;
      yield* this.inSlices(length, (from, to) => {
        // From the end, and the newest recommendation is followed first.
        for (let index = length - to; index < length - from; index++) this.free(held[index]);
        settle(this.scope);
        this.scope.holdsQueue = true;
      });
    }
  }

  /** Holds what the walk has found outside of the graph since the last time. */
  private holdOutside(holder: ClientState, { outside }: GraphWalk): void {
    if (outside !== this.outside) this.outsideSeen = 0;
    this.outside = outside;
    for (; this.outsideSeen < outside.length; this.outsideSeen++) {
      const task = outside[this.outsideSeen] as TaskState;
      keepAlive(holder, task);
      this.heldOutside.push(task);
    }
  }

  /** Returns false when the task is not held; it may not be enlisted yet. */
  private free(task: TaskState | undefined): boolean {
    const { holder } = this;
    if (holder === undefined || task === undefined || !endKeepAlive(holder, task)) return false;
    // What forgets a task does not ask what holds it.
    if (task.state !== 'forgotten') releaseUnwanted(this.scope, task);
    return true;
  }

  /** Pauses after each slice; not at all in a graph that one stimulus takes in. */
  private inSlices(length: number, take: (from: number, to: number) => void): Iterable<undefined> {
    if (this.holder !== undefined) return this.sliced(length, take);
    take(0, length);
    return NO_PAUSES;
  }

  private *sliced(length: number, take: (from: number, to: number) => void): Steps {
    for (let from = 0; from < length; from += this.sliceTasks) {
      take(from, Math.min(length, from + this.sliceTasks));
      yield;
    }
  }
}

/** Cancels the pending graphs of this client, or of all clients. */
export function dropIntakes(scope: KernelScope, client?: ClientState): void {
  const { intakes } = scope;
  for (const intake of [...intakes].reverse()) {
    if (client === undefined || intake.client === client) intake.drop();
  }
}

// The answers to a client that concern a graph instead of the results of its tasks.

/** Reports requested keys that depend on unknown keys, or on keys that stand for something else. */
function reportLost(scope: KernelScope, client: ClientState, lost: GraphPlan['lost']): void {
  for (const { key, missing, isTaken } of lost) {
    if (isTaken === true) {
      refuseTaken(scope, client, [key], missing);
      continue;
    }
    // The graph that defines it is pending: what the client waits for is not this graph's.
    if (wantedBy(scope, client, key) !== undefined) continue;
    scope.outbox.toClient(client, {
      op: 'cancelled-keys',
      keys: [key],
      reason:
        key === missing
          ? UNKNOWN_KEY
          : `it depends on ${missing}, which is neither in the graph nor known to the scheduler`,
    });
  }
}

/**
 * These keys need one that stands for another computation already. The client gets none of them, neither what it wanted
 * of them before: under one key it cannot tell the one result from the other.
 */
function refuseTaken(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  taken: string,
): void {
  const reason = `the key "${taken}" stands for another value or computation already`;
  scope.outbox.toClient(client, { op: 'cancelled-keys', keys, reason, taken });
  for (const key of keys) {
    const task = wantedBy(scope, client, key);
    if (task !== undefined) releaseWants(scope, client, [task]);
  }
}

/** The task of the key, if the client wants it already. */
export function wantedBy(
  { cluster }: KernelScope,
  client: ClientState,
  key: string,
): TaskState | undefined {
  const task = cluster.tasks.get(key);
  return task !== undefined && client.wantsWhat.has(task) ? task : undefined;
}

/** Nothing of a graph with a cycle was taken. */
function refuseCycle(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  cycle: readonly string[],
): void {
  const failure = schedulerFailure(
    'ERR_GRAPH_CYCLE',
    `the graph has a cycle: ${cycle.join(' -> ')}. Each of these depends on the next; break one link.`,
    { cycle },
  );
  for (const key of keys) {
    const known = wantedBy(scope, client, key);
    if (known !== undefined) {
      // It has another definition, and is not affected.
      reportState(scope, known, client);
      continue;
    }
    scope.outbox.toClient(client, { op: 'task-erred', key, blame: cycle[0] as string, failure });
  }
}

/** From a journal: proofs for results of workers that come back. O(tasks). */
function noteFirstRuns(
  { cluster }: KernelScope,
  { tasks }: UpdateGraph,
  firstRunIds: readonly number[],
): void {
  for (let index = 0; index < tasks.length; index++) {
    const task = cluster.tasks.get((tasks[index] as GraphTask).key);
    const firstRunId = firstRunIds[index] ?? firstRunIds[0] ?? 0;
    if (task?.runId === -1) task.runId = unassignedSince(firstRunId);
  }
}

/** The tasks of a graph exist and are linked; none of them has started. */
function reportSubmitted(
  scope: KernelScope,
  client: ClientState,
  keys: readonly string[],
  tasks: readonly TaskState[],
): void {
  const { stimulusId } = scope;
  for (const hook of scope.ports.hooks.graphUpdated) {
    hook({ client: client.key, keys, tasks, stimulusId });
  }
}

/** A submitted graph as the kernel is going to take it. Tasks are named by their index in it. */
export interface GraphPlan {
  /** Tasks that the requested keys need, dependencies before dependents. */
  readonly order: Int32Array;
  /** The task of the cluster for each task of the graph; those of the order are in the tables. */
  readonly states: readonly TaskState[];
  /** Tasks outside of the graph that it depends on. */
  readonly outside: readonly TaskState[];
  /** Requested keys that can be had. */
  readonly keys: readonly string[];
  /** Requested keys that depend on a key that is unknown or taken, with the first such key of each. */
  readonly lost: readonly LostKey[];
  /** A cycle, each key depending on the next, the first one repeated at the end. */
  readonly cycle: readonly string[] | undefined;
  /** True when this graph brought the task; otherwise the cluster knew the key before. */
  isNew(index: number): boolean;
  /** True when it brought all of its tasks, and all are needed. */
  readonly isAllNew: boolean;
  /** The index in {@link targets} at which the dependencies of each task begin; one more than there are tasks. */
  readonly offsets: Int32Array;
  /** Indices of the dependencies of the new tasks of the order; -1 for one outside of the graph. */
  readonly targets: Int32Array;
  /** The number of times that each task is named as a dependency, culled tasks included. */
  readonly dependentCounts: Int32Array;
  /** The dependency at this place of {@link targets}, wherever it is. */
  dependencyAt(place: number): TaskState;
}

/** A requested key that cannot be had. */
interface LostKey {
  readonly key: string;
  /** The key that is not known, or that stands for another computation already. */
  readonly missing: string;
  readonly isTaken?: true;
}

const WHITE = 0;
const GREY = 1;
const BLACK = 2;
const LOST = 3;

/**
 * Finds what the requested keys need: culls the rest, and finds cycles and dependencies that neither
 * the graph nor the cluster knows. What the cluster knows already needs nothing from the graph. The steps
 * are `enlist`, `resolve`, `advance` and `cull`, each of which may be done in slices.
 *
 * The tasks of the order are in the cluster's tables afterwards, released and without a definition; a
 * graph with a cycle leaves none. O(tasks + dependencies), with one look-up of a key for each.
 */
export class GraphWalk implements GraphPlan {
  /** Another list after the walk has begun anew. */
  outside: TaskState[] = [];
  keys: string[] = [];
  readonly lost: LostKey[] = [];
  cycle: readonly string[] | undefined;

  private readonly table: GraphTable;
  private readonly ordered: Int32Array;
  private orderedCount = 0;
  private readonly colours: Uint8Array;
  /** By place, as {@link targets}: the dependencies outside of the graph, once there is one. */
  private outsideAt: TaskState[] | undefined;
  /** The missing key under each lost task. */
  private readonly missing = new Map<number, string>();
  /** Keys under which the cluster knows another computation than this graph defines. */
  private readonly taken = new Set<string>();
  /** From a requested task down, and how many tasks that are. */
  private readonly path: Int32Array;
  private depth = 0;
  /** By task of the path: the place of {@link targets} that is looked at next. */
  private readonly cursors: Int32Array;
  /** Keys to ask for, how many of them are answered, and the task of the next one while it is looked at. */
  private requested: readonly string[];
  private answered = 0;
  private current = OUTSIDE;
  private readonly seenOutside = new Set<TaskState>();
  private isSecondWalk = false;

  /** @param isAmidAnother - a large graph is being walked through meanwhile: see {@link restoreIndices} */
  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
    keys: readonly string[],
    isAmidAnother = false,
  ) {
    this.requested = keys;
    this.table = new GraphTable(cluster, tasks, isAmidAnother);
    this.ordered = new Int32Array(tasks.length);
    this.colours = new Uint8Array(tasks.length);
    this.path = new Int32Array(tasks.length);
    this.cursors = new Int32Array(tasks.length);
  }

  get order(): Int32Array {
    const { ordered, orderedCount } = this;
    return orderedCount === ordered.length ? ordered : ordered.subarray(0, orderedCount);
  }

  get states(): readonly TaskState[] {
    return this.table.states;
  }

  get offsets(): Int32Array {
    return this.table.offsets;
  }

  get targets(): Int32Array {
    return this.table.targets;
  }

  get dependentCounts(): Int32Array {
    return this.table.dependentCounts;
  }

  get isAllNew(): boolean {
    return this.orderedCount === this.tasks.length && this.table.isAllNew;
  }

  isNew(index: number): boolean {
    return this.table.isNew(index);
  }

  dependencyAt(place: number): TaskState {
    const index = this.table.targets[place] as number;
    return (index === OUTSIDE ? this.outsideAt?.[place] : this.table.states[index]) as TaskState;
  }

  /** Finds these tasks in the cluster, or makes them. */
  enlist(from: number, to: number): void {
    this.table.enlist(from, to);
  }

  /** Finds what these tasks depend on, when all tasks are enlisted. */
  resolve(from: number, to: number): void {
    this.table.resolve(from, to);
  }

  /**
   * Continues the walk, when all tasks are resolved.
   * @param stepsMax - tasks and dependencies to visit
   * @returns whether the walk is over
   */
  advance(stepsMax: number): boolean {
    for (let steps = 0; this.answered < this.requested.length; steps++) {
      if (steps >= stepsMax) return false;
      if (this.current === OUTSIDE && !this.begin()) continue;
      steps += this.descend(stepsMax - steps);
      if (this.depth > 0) return false;
      this.answer();
    }
    // What only lost keys need must not be made: once more, without these.
    if (this.lost.length === 0 || this.cycle !== undefined || this.isSecondWalk) return true;
    this.restart();
    return this.advance(stepsMax);
  }

  /** True when tasks were enlisted that are not going to be made. */
  get hasCulled(): boolean {
    return this.cycle !== undefined || this.orderedCount < this.tasks.length;
  }

  /**
   * Takes those tasks out of the tables again, among the ones at these indices. Returns those that have
   * come to be needed otherwise, which stay.
   * @param holder - a client that does not count, and stops wanting what is taken out
   */
  cull(from: number, to: number, holder?: ClientState): TaskState[] {
    const needed: TaskState[] = [];
    for (let index = from; index < to; index++) {
      const isTaken = this.cycle === undefined && this.colours[index] === BLACK;
      if (isTaken || !this.isNew(index)) continue;
      const task = this.states[index] as TaskState;
      if (!this.discard(task, holder)) needed.push(task);
    }
    return needed;
  }

  /** Gives the tasks back to the walk that was under way before. This one is of no more use then. */
  restoreIndices(): void {
    this.table.restoreIndices();
  }

  private discard(task: TaskState, holder: ClientState | undefined): boolean {
    if (!isPlaceholder(task) || task.dependentCount > 0) return false;
    if (holder !== undefined && task.whoWants.size === 1) endKeepAlive(holder, task);
    if (task.whoWants.size > 0) return false;
    this.cluster.discardTask(task);
    return true;
  }

  /** The next of the requested keys. Returns whether it is one of a task of this graph. */
  private begin(): boolean {
    const key = this.requested[this.answered] as string;
    const task = this.cluster.tasks.get(key);
    this.current = task === undefined ? OUTSIDE : this.table.indexOf(task);
    if (this.current !== OUTSIDE) {
      if (this.colours[this.current] === WHITE) this.enter(this.current);
      return true;
    }
    this.answered++;
    if (task === undefined || isPlaceholder(task)) this.lost.push({ key, missing: key });
    else {
      this.keys.push(key);
      this.addOutside(task);
    }
    return false;
  }

  private answer(): void {
    const key = this.requested[this.answered++] as string;
    const missing = this.missing.get(this.current);
    if (missing === undefined) this.keys.push(key);
    else this.lost.push({ key, missing, ...(this.taken.has(missing) ? { isTaken: true } : {}) });
    this.current = OUTSIDE;
  }

  /** Walks again from those of the requested keys that can be had. */
  private restart(): void {
    this.isSecondWalk = true;
    this.requested = this.keys;
    this.answered = 0;
    this.keys = [];
    this.orderedCount = 0;
    this.outside = [];
    this.seenOutside.clear();
    this.missing.clear();
    this.colours.fill(WHITE);
  }

  /**
   * Depth first without recursion: graphs are deeper than the stack. Ends when the path is empty or
   * `stepsMax` steps were made. Returns the number of steps.
   */
  private descend(stepsMax: number): number {
    const { path, cursors } = this;
    const { offsets, targets } = this.table;
    // Counted upwards: a number that may be infinite is an object for V8, a new one for each step.
    let steps = 0;
    for (; this.depth > 0 && steps < stepsMax; steps++) {
      const index = path[this.depth - 1] as number;
      const place = cursors[index] as number;
      if (place === offsets[index + 1]) {
        this.leave(index);
        continue;
      }
      cursors[index] = place + 1;
      this.visit(index, place, targets[place] as number);
    }
    return steps;
  }

  private visit(index: number, place: number, next: number): void {
    const colour = next === OUTSIDE ? OUTSIDE : (this.colours[next] as number);
    if (colour === BLACK) return;
    if (colour === WHITE && this.states[next]?.state !== 'forgotten') this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
    else this.visitOutside(index, place);
  }

  /** The dependency is not in the graph, or it was forgotten since. */
  private visitOutside(index: number, place: number): void {
    const { targets, offsets } = this.table;
    const { dependencies } = this.tasks[index] as GraphTask;
    const key = dependencies[place - (offsets[index] as number)] as string;
    targets[place] = OUTSIDE;
    const task = this.cluster.tasks.get(key);
    if (task === undefined || isPlaceholder(task)) {
      this.missing.set(index, key);
      return;
    }
    this.addOutside(task);
    // Full length from the start: written here and there, an empty array would become a hash table.
    this.outsideAt ??= new Array<TaskState>(targets.length);
    this.outsideAt[place] = task;
  }

  private addOutside(task: TaskState): void {
    if (this.seenOutside.has(task)) return;
    this.seenOutside.add(task);
    this.outside.push(task);
  }

  private enter(index: number): void {
    const { table } = this;
    this.colours[index] = GREY;
    this.path[this.depth++] = index;
    this.cursors[index] = table.offsets[index] as number;
    const { key, runSpec } = this.tasks[index] as GraphTask;
    if (!table.isNew(index)) {
      const taken = table.takenBelow(index);
      if (taken !== undefined) {
        this.taken.add(taken);
        this.missing.set(index, taken);
      }
      this.enterKnown(index);
    } else if (runSpec === undefined) this.missing.set(index, key);
  }

  /** A known task keeps its definition: only its own dependencies count, and these are known, too. */
  private enterKnown(index: number): void {
    const { runSpec, state } = this.states[index] as TaskState;
    if (runSpec === undefined && !isDone(state)) this.table.resolveOne(index);
    else this.cursors[index] = this.table.offsets[index + 1] as number;
  }

  private leave(index: number): void {
    this.depth--;
    const missing = this.missing.size === 0 ? undefined : this.missing.get(index);
    if (missing === undefined) {
      this.colours[index] = BLACK;
      this.ordered[this.orderedCount++] = index;
      return;
    }
    this.colours[index] = LOST;
    if (this.depth > 0) this.missing.set(this.path[this.depth - 1] as number, missing);
  }

  private foundCycle(next: number): void {
    if (this.cycle !== undefined) return;
    const path = this.path.subarray(0, this.depth);
    const loop = [...path.subarray(path.indexOf(next)), next];
    this.cycle = loop.map((index) => (this.tasks[index] as GraphTask).key);
  }
}
