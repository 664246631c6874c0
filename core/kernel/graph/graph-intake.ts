/**
 * A large graph is taken in by slices, between which other things happen. The steps are those of
 * `on-graph.ts`, and what comes of them is the same.
 */
import type { UpdateGraph } from '../../messages/stimulus.ts';
import { GenericClient } from '../../state/client.ts';
import { addWant, endKeepAlive, keepAlive } from '../../state/relations.ts';
import {
  byPriority,
  isSortedByPriority,
  type TaskState,
  type ClientState,
} from '../../state/task.ts';
import { isDone } from '../../state/task-state-name.ts';
import { sortInSlices } from '../../util/sort-in-slices.ts';
import { reportState } from '../transitions/client-reports.ts';
import { refuseCycle, reportLost, reportSubmitted } from './graph-answers.ts';
import { TaskLinker } from './task-linker.ts';
import { isPlaceholder } from './graph-table.ts';
import { GraphWalk } from './graph-walk.ts';
import { showGraph } from './prepare.ts';
import { releaseUnwanted } from '../transitions/task-effects.ts';
import { ranksInSteps } from './ranks.ts';
import type { CancellationCause, KernelScope, PendingIntake } from '../scope.ts';
import { PendingStarts } from './pending-starts.ts';
import { settle } from '../transitions/transition-loop.ts';

/** Work that is done in slices: everything between two `yield`s belongs to one stimulus. */
type Slices<T = void> = Generator<undefined, T, undefined>;

/**
 * Until all of its tasks are there none of them starts, and nobody else can build on those that have no
 * definition yet. A pseudo-client that is in no table wants everything that the graph names, so nothing
 * of it is forgotten meanwhile; when that ends nobody but those who need a task hold it. What it holds is
 * not listed once more: a million tasks in a set are 40 MB, and are hashed twice.
 */
export class GraphIntake implements PendingIntake {
  private readonly holder: ClientState;
  private readonly slices: Slices;
  private readonly sliceTasks: number;
  private walk: GraphWalk | undefined;
  private readonly heldOutside: TaskState[] = [];
  /** The list of the walk that these come from, and how many of it there are. */
  private outside: readonly TaskState[] = [];
  private outsideSeen = 0;
  private taker: TaskLinker | undefined;
  private line: PendingStarts | undefined;
  private hasFreedWorker = false;
  /** Keys that are not to be had any more, with the reason. */
  private readonly cancelled = new Map<string, CancellationCause>();

  constructor(
    private readonly scope: KernelScope,
    private readonly stimulus: UpdateGraph,
    readonly client: ClientState,
  ) {
    this.holder = new GenericClient<TaskState>(`a graph of ${client.key}`, scope.nowMs, {}, true);
    this.sliceTasks = stimulus.sliceTasks ?? Infinity;
    this.slices = this.takeIn();
  }

  get stimulusId(): string {
    return this.stimulus.stimulusId;
  }

  advance(): boolean {
    return this.slices.next().done === true;
  }

  cancel(tasks: Iterable<TaskState>, cause: CancellationCause): void {
    for (const task of tasks) {
      const isOurs = task.whoWants.has(this.holder) || this.client.wantsWhat.has(task);
      if (isOurs) this.cancelled.set(task.key, cause);
    }
  }

  drop(): void {
    const { scope } = this;
    const begun = this.line?.rest ?? this.taker?.touched ?? [];
    this.line?.clear();
    const held = [...(this.walk?.states ?? []), ...this.heldOutside].filter((task) =>
      this.free(task),
    );
    // Others may have wished for what will never be defined.
    for (const task of held) if (isPlaceholder(task)) scope.recommend(task, 'forgotten');
    settle(scope);
    for (const task of begun) {
      const isDeferred = task.state === 'released' && task.runSpec !== undefined;
      if (isDeferred && task.isNeeded) scope.recommend(task, 'waiting');
    }
    settle(scope);
  }

  private *takeIn(): Slices {
    const { scope, client, stimulus } = this;
    const walk = new GraphWalk(scope.cluster, stimulus.tasks, stimulus.keys);
    this.walk = walk;
    yield* this.plan(walk);
    if (walk.cycle !== undefined) {
      refuseCycle(scope, client, stimulus.keys, walk.cycle);
      yield* this.releaseUnneeded(walk, []);
      return;
    }
    reportLost(scope, client, walk.lost);
    const ranks = walk.order.length === 0 ? [] : yield* ranksInSteps(scope, stimulus, walk);
    const taker = new TaskLinker(scope, stimulus, walk, ranks);
    this.taker = taker;
    yield;
    yield* this.inSlices(walk.order.length, (from, to) => taker.take(from, to));
    taker.finish();
    const settled = yield* this.wish(walk.keys);
    if (taker.fresh !== undefined) showGraph(scope, taker.fresh);
    const started = yield* this.start(taker.touched, walk.keys);
    yield* this.inSlices(settled.length, (from, to) => {
      for (const task of settled.slice(from, to)) reportState(scope, task, client);
    });
    yield* this.releaseUnneeded(walk, started);
    scope.hasFreedWorker ||= this.hasFreedWorker;
    scope.holdsQueue = false;
  }

  private *plan(walk: GraphWalk): Slices {
    const { scope, holder, sliceTasks } = this;
    const { length } = this.stimulus.tasks;
    yield* this.inSlices(length, (from, to) => {
      walk.enlist(from, to);
      for (let index = from; index < to; index++)
        keepAlive(holder, walk.states[index] as TaskState);
    });
    yield* this.inSlices(length, (from, to) => walk.resolve(from, to));
    while (!walk.advance(sliceTasks)) {
      this.holdOutside(walk);
      yield;
    }
    this.holdOutside(walk);
    if (walk.order.length === length) return;
    yield* this.inSlices(length, (from, to) => {
      for (let index = from; index < to; index++) {
        if (!walk.isCulled(index)) continue;
        const task = walk.states[index] as TaskState;
        if (walk.discard(index, holder)) continue;
        this.free(task);
        if (isPlaceholder(task)) scope.recommend(task, 'forgotten');
      }
    });
  }

  /** Returns the wanted tasks whose result or failure was there before. */
  private *wish(keys: readonly string[]): Slices<TaskState[]> {
    const { scope, client } = this;
    const settled: TaskState[] = [];
    yield* this.inSlices(keys.length, (from, to) => {
      for (let index = from; index < to; index++) {
        const key = keys[index] as string;
        const task = scope.cluster.tasks.get(key);
        const cause = this.cancelled.get(key);
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
    });
    return settled;
  }

  /** Returns the tasks in the order in which they started, the first one first. */
  private *start(
    tasks: readonly TaskState[],
    keys: readonly string[],
  ): Slices<readonly TaskState[]> {
    const { scope, sliceTasks } = this;
    const sorted = isSortedByPriority(tasks)
      ? tasks
      : yield* sortInSlices(tasks, byPriority, sliceTasks);
    const line = new PendingStarts(sorted);
    this.line = line;
    yield* this.inSlices(sorted.length, (from, to) => {
      // What an earlier stimulus has left to be let go is held now, and starts again with the others.
      for (let index = from; index < to; index++) {
        scope.recommendations.deferredReleases.keep(sorted[index] as TaskState);
      }
      line.join(from, to);
    });
    reportSubmitted(scope, this.client, keys, tasks);
    while (!line.isOver) {
      scope.recommendations.line = line;
      line.advance(sliceTasks, (task, target) => scope.recommend(task, target));
      settle(scope);
      scope.recommendations.line = undefined;
      // What is queued comes after what starts with the same graph.
      scope.holdsQueue = true;
      this.hasFreedWorker ||= scope.hasFreedWorker;
      yield;
    }
    return sorted;
  }

  /** What started last and is needed by nobody is given up first, as in a graph that is taken in at once. */
  private *releaseUnneeded({ states }: GraphWalk, started: readonly TaskState[]): Slices {
    for (const held of [started, states, this.heldOutside]) {
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
  private holdOutside({ outside }: GraphWalk): void {
    if (outside !== this.outside) this.outsideSeen = 0;
    this.outside = outside;
    for (; this.outsideSeen < outside.length; this.outsideSeen++) {
      const task = outside[this.outsideSeen] as TaskState;
      keepAlive(this.holder, task);
      this.heldOutside.push(task);
    }
  }

  /** Returns false when the task is not held; it may not be enlisted yet. */
  private free(task: TaskState | undefined): boolean {
    if (task === undefined || !endKeepAlive(this.holder, task)) return false;
    // Whoever has to give it up does not ask who holds it.
    if (task.state !== 'forgotten') releaseUnwanted(this.scope, task);
    return true;
  }

  private *inSlices(length: number, take: (from: number, to: number) => void): Slices {
    for (let from = 0; from < length; from += this.sliceTasks) {
      take(from, Math.min(length, from + this.sliceTasks));
      yield;
    }
  }
}

/** Gives up the graphs of this client, or of all, as far as they are not taken in yet. */
export function dropIntakes(scope: KernelScope, client?: ClientState): void {
  const { intakes } = scope;
  for (let index = intakes.length - 1; index >= 0; index--) {
    const intake = intakes[index] as PendingIntake;
    if (client !== undefined && intake.client !== client) continue;
    intakes.splice(index, 1);
    intake.drop();
  }
}
