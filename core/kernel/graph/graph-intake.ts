/**
 * How a graph is taken in: enlist → resolve → walk → cull → order → link → start. A small graph is taken in
 * by the stimulus that brings it. A large one is taken in by slices, between which other stimuli are
 * handled; it comes to the same.
 */
import type { UpdateGraph } from '../../messages/stimulus.ts';
import { GenericClient } from '../../state/client.ts';
import { addWant, endKeepAlive, keepAlive } from '../../state/relations.ts';
import {
  byPriority,
  isSortedByPriority,
  type ClientState,
  type TaskState,
} from '../../state/task.ts';
import { isDone } from '../../state/task-state-name.ts';
import { sortInSlices } from '../../util/sort-in-slices.ts';
import { reportState } from '../transitions/client-reports.ts';
import { refuseCycle, refuseTaken, reportLost, reportSubmitted } from './graph-answers.ts';
import { TaskLinker } from './task-linker.ts';
import { isPlaceholder } from './graph-table.ts';
import { GraphWalk } from './graph-walk.ts';
import { showGraph } from './prepare.ts';
import { releaseUnwanted } from '../transitions/task-effects.ts';
import { findRanks } from './ranks.ts';
import type { CancellationCause, KernelScope, PendingIntake } from '../scope.ts';
import { PendingStarts } from './pending-starts.ts';
import { settle } from '../transitions/transition-loop.ts';

/** Work that is done in slices: everything between two `yield`s belongs to one stimulus. */
type Slices = Generator<undefined, void, undefined>;

const NO_PAUSES: readonly undefined[] = [];

/**
 * The intake of one graph. Until all tasks of a large graph are there, none of them starts, and no other
 * submission can build on those that have no definition yet. A pseudo-client that is in no table keeps
 * everything alive that the graph names, so nothing of it is forgotten meanwhile; when that ends, only the
 * tasks that need a task keep it. Its tasks are not listed once more: a million tasks in a set are 40 MB,
 * and are hashed twice.
 */
export class GraphIntake implements PendingIntake {
  /** Undefined for a graph that one stimulus takes in. */
  readonly holder: ClientState | undefined;
  private readonly slices: Slices;
  private readonly sliceTasks: number;
  private walk: GraphWalk | undefined;
  private readonly heldOutside: TaskState[] = [];
  /** The list of the walk that these come from, and how many of it there are. */
  private outside: readonly TaskState[] | undefined;
  private outsideSeen = 0;
  private linker: TaskLinker | undefined;
  private starts: PendingStarts | undefined;
  private hasFreedWorker = false;
  /** Keys that were cancelled meanwhile, with the reason. */
  private cancelled: Map<string, CancellationCause> | undefined;

  constructor(
    private readonly scope: KernelScope,
    private readonly stimulus: UpdateGraph,
    readonly client: ClientState,
  ) {
    const { sliceTasks } = stimulus;
    this.sliceTasks = sliceTasks ?? Infinity;
    if (sliceTasks !== undefined) {
      const key = `a graph of ${client.key}`;
      this.holder = new GenericClient<TaskState>(key, scope.nowMs, {}, true);
    }
    this.slices = this.takeIn();
  }

  get stimulusId(): string {
    return this.stimulus.stimulusId;
  }

  get keys(): readonly string[] {
    return this.stimulus.keys;
  }

  advance(): boolean {
    return this.slices.next().done === true;
  }

  cancel(tasks: Iterable<TaskState>, cause: CancellationCause): void {
    const { holder, client } = this;
    for (const task of tasks) {
      const isHeld = holder !== undefined && task.whoWants.has(holder);
      if (!isHeld && !client.wantsWhat.has(task)) continue;
      this.cancelled ??= new Map();
      this.cancelled.set(task.key, cause);
    }
  }

  abandon(): void {
    this.walk?.restoreIndices();
    this.starts?.clear();
  }

  drop(): void {
    const { scope } = this;
    const begun = this.starts?.rest ?? this.linker?.touched ?? [];
    this.starts?.clear();
    const held = [...(this.walk?.states ?? []), ...this.heldOutside].filter((task) =>
      this.free(task),
    );
    // Other clients may want what will never be defined.
    for (const task of held) if (isPlaceholder(task)) scope.recommend(task, 'forgotten');
    settle(scope);
    for (const task of begun) {
      const isDeferred = task.state === 'released' && task.runSpec !== undefined;
      if (isDeferred && task.isNeeded) scope.recommend(task, 'waiting');
    }
    settle(scope);
  }

  private *takeIn(): Slices {
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
    scope.hasFreedWorker ||= this.hasFreedWorker;
    scope.holdsQueue = false;
  }

  /** The steps from the order on. */
  private *link(walk: GraphWalk): Slices {
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
      this.drop();
      walk.restoreIndices();
      refuseTaken(scope, client, keys, taken);
      return;
    }
    linker.finish();
    walk.restoreIndices();
    const settled: TaskState[] = [];
    yield* this.inSlices(keys.length, (from, to) => this.want(keys, from, to, settled));
    const { touched, fresh } = linker;
    if (fresh !== undefined) showGraph(scope, fresh);
    // A depth-first order comes out of the walk sorted already.
    const sorted = isSortedByPriority(touched)
      ? touched
      : yield* sortInSlices(touched, byPriority, this.sliceTasks);
    const starts = new PendingStarts(sorted);
    this.starts = starts;
    if (isSliced) yield* this.inSlices(sorted.length, (from, to) => this.join(starts, from, to));
    reportSubmitted(scope, client, keys, touched);
    while (!starts.isOver) {
      this.start(starts);
      if (isSliced) yield;
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
          ...(cause ?? { reason: 'it depends on data that is lost' }),
        });
        continue;
      }
      addWant(client, task);
      if (isDone(task.state)) settled.push(task);
    }
  }

  /** What an earlier stimulus has left to be released is held now, and starts with the others. */
  private join(starts: PendingStarts, from: number, to: number): void {
    const { deferredReleases } = this.scope.recommendations;
    for (let index = from; index < to; index++) {
      deferredReleases.keep(starts.tasks[index] as TaskState);
    }
    starts.join(from, to);
  }

  private start(starts: PendingStarts): void {
    const { scope } = this;
    scope.recommendations.line = starts;
    starts.advance(this.sliceTasks, scope);
    settle(scope);
    scope.recommendations.line = undefined;
    if (this.holder === undefined) return;
    // What is queued comes after what starts with the same graph.
    scope.holdsQueue = true;
    this.hasFreedWorker ||= scope.hasFreedWorker;
  }

  /** What started last and is not needed is given up first, as in a graph that is taken in at once. */
  private *endHolds({ states }: GraphWalk): Slices {
    for (const held of [this.starts?.tasks ?? [], states, this.heldOutside]) {
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

  private *sliced(length: number, take: (from: number, to: number) => void): Slices {
    for (let from = 0; from < length; from += this.sliceTasks) {
      take(from, Math.min(length, from + this.sliceTasks));
      yield;
    }
  }
}

/** Cancels the pending graphs of this client, or of all clients. */
export function dropIntakes(scope: KernelScope, client?: ClientState): void {
  const { intakes } = scope;
  for (let index = intakes.length - 1; index >= 0; index--) {
    const intake = intakes[index] as PendingIntake;
    if (client !== undefined && intake.client !== client) continue;
    intakes.splice(index, 1);
    intake.drop();
  }
}
