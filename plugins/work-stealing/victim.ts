import { MinHeap, type ClusterView, type TaskView } from '../../core/api/index.ts';
import { LEVEL_COUNT, levelOf } from './cost-levels.ts';
import type { Load } from './loads.ts';

/** Which of two tasks of one level is stolen first, as for a sort. Must not call two tasks equal. */
export type TaskOrder = (a: TaskView, b: TaskView) => number;

/** Tasks of one level on one worker, the one that is stolen first on top. */
class Level {
  readonly tasks: MinHeap<TaskView>;
  /** Seconds that the shortest of them takes. */
  leastComputeS = Infinity;

  constructor(order: TaskOrder) {
    this.tasks = new MinHeap(order);
  }
}

/** A worker from which tasks are stolen in a round, with what there is to steal. */
export class Victim {
  /** Whether its tasks have been looked at. */
  isSearched = false;
  private readonly levels: (Level | undefined)[] = new Array<undefined>(LEVEL_COUNT);

  constructor(
    readonly load: Load,
    private readonly order: TaskOrder,
  ) {}

  level(level: number): Level | undefined {
    return this.levels[level];
  }

  /** Takes down a task, if it can be stolen at all and its prefix is not spared. */
  consider(task: TaskView, costs: ClusterView['costs'], spared: ReadonlySet<string>): void {
    if (!isStealable(task, this)) return;
    if (isSpared(task.prefix.name, costs, spared)) return;
    const index = levelOf(task, costs);
    if (index === undefined) return;
    const level = (this.levels[index] ??= new Level(this.order));
    const computeS = task.prefix.durationEstimateS;
    if (computeS < level.leastComputeS) level.leastComputeS = computeS;
    level.tasks.push(task);
  }
}

/** It is here, and may be asked for; things change between the slices of a round. */
export function isStealable(task: TaskView, { load }: Victim): boolean {
  const { worker } = load;
  if (task.processingOn !== worker) return false;
  if (worker.longRunning.size > 0 && worker.longRunning.has(task)) return false;
  const { steal } = task;
  return steal === undefined || steal.state === 'moved';
}

/** Tasks that are configured to be as short, in seconds, are not worth a message. */
const FAST_S = 0.001;

function isSpared(
  prefix: string,
  { defaultTaskDurationsS }: ClusterView['costs'],
  spared: ReadonlySet<string>,
): boolean {
  if (spared.has(prefix)) return true;
  if (defaultTaskDurationsS.size === 0) return false;
  return (defaultTaskDurationsS.get(prefix) ?? Infinity) <= FAST_S;
}

/** By descending priority: what would run soon is not worth moving, and may have begun by then. */
export function lastFirst(a: TaskView, b: TaskView): number {
  const user = b.negatedUserPriority - a.negatedUserPriority;
  if (user !== 0) return user;
  const generation = b.generation - a.generation;
  if (generation !== 0) return generation;
  const rank = b.rank - a.rank;
  if (rank !== 0) return rank;
  const arrival = b.arrival - a.arrival;
  if (arrival !== 0) return arrival;
  return a.key < b.key ? 1 : -1;
}
