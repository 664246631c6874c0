import type { ClusterView, TaskView } from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/collections/min-heap.ts';
import { LEVEL_COUNT } from './cost-levels.ts';
import type { Load } from './loads.ts';
import type { RoundRules, TaskOrder } from './rules.ts';

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
  /** Whether its tasks have been examined. */
  isSearched = false;
  private readonly levels: (Level | undefined)[] = new Array<undefined>(LEVEL_COUNT);

  constructor(
    readonly load: Load,
    private readonly rules: RoundRules,
  ) {}

  level(level: number): Level | undefined {
    return this.levels[level];
  }

  /** Takes down a task, if it can be stolen at all and its prefix is not spared. */
  consider(task: TaskView, costs: ClusterView['costs'], spared: ReadonlySet<string>): void {
    if (!isStealable(task, this)) return;
    if (isSpared(task.prefix.name, costs, spared)) return;
    const index = this.rules.levelOf(task, costs);
    if (index === undefined) return;
    const level = (this.levels[index] ??= new Level(this.rules.order));
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
