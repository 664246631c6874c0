import type { ClusterView, TaskView, WorkerLoad, WorkerView } from '../../core/api/index.ts';
import { SHOWN } from '../../core/util/values.ts';

/**
 * Tasks are stolen in the order of what moving them costs, compared with what computing them takes.
 * Level 0: they need nothing. Each level above stands for twice the ratio of the one before, level 6
 * for a transfer that takes as long as the computation. Dask's `stealing.py`.
 */
export const LEVEL_COUNT = 15;

/** The cost of a move of a task besides its bytes, in seconds. */
const LATENCY_S = 0.1;

/** Level of ratio 1. */
const EVEN_LEVEL = 6;

/**
 * The level of a processing task; undefined when stealing it never pays. Does not look at where its
 * inputs are. O(dependencies).
 */
export function levelOf(task: TaskView, costs: ClusterView['costs']): number | undefined {
  const { dependencies } = task;
  if (dependencies.length === 0) return 0;
  const computeS = task.prefix.durationEstimateS;
  if (computeS <= 0) return undefined;
  let nbytes = 0;
  for (const dependency of dependencies) nbytes += nbytesOf(dependency, costs);
  const transferS = nbytes / costs.bandwidth + LATENCY_S;
  const level = roundHalfToEven(Math.log2(transferS / computeS) + EVEN_LEVEL);
  return level < LEVEL_COUNT ? Math.max(1, level) : undefined;
}

/** Bytes of a result, the default while they are unknown. */
export function nbytesOf({ nbytes }: TaskView, costs: ClusterView['costs']): number {
  return nbytes >= 0 ? nbytes : costs.defaultDataSize;
}

/** As Python rounds. */
function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** The load of a worker as it was when the round first looked at it, with what was asked for since. */
export class Load implements WorkerLoad {
  [SHOWN]: object | 'load' = 'load';
  workS: number;
  perThreadS: number;
  taskCount: number;
  readonly threadCount: number;
  /** Ties go to the worker with the fewest stored bytes, then to the lowest rank. */
  readonly nbytes: number;
  readonly rank: number;
  /** It finishes what it runs and begins nothing: its tasks are better off anywhere else. */
  readonly isStuck: boolean;
  isThief = false;
  takenCount = 0;
  /** Scratch: bytes of the inputs of the task in question that are here. */
  heldBytes = 0;
  /** Scratch: whether it could have the task in question. */
  isCandidate = false;

  constructor(readonly worker: WorkerView) {
    this.workS = worker.occupancyS + worker.inFlightS;
    this.taskCount = worker.processing.size + worker.inFlightTasks;
    this.threadCount = worker.threadCount;
    this.perThreadS = this.workS / this.threadCount;
    this.nbytes = worker.nbytes;
    this.rank = worker.rank;
    this.isStuck = worker.status !== 'running';
  }

  /** A task that it may be rid of. */
  give(seconds: number): void {
    this.add(-seconds, -1);
  }

  /** A task that it may get. */
  take(seconds: number): void {
    this.takenCount++;
    this.add(seconds, 1);
  }

  private add(seconds: number, tasks: 1 | -1): void {
    this.workS += seconds;
    this.taskCount += tasks;
    this.perThreadS = this.workS / this.threadCount;
  }
}

/** The loads of workers, made when they are first asked for. */
export class Loads {
  private readonly byWorker = new Map<WorkerView, Load>();

  of(worker: WorkerView): Load {
    let load = this.byWorker.get(worker);
    if (load === undefined) {
      load = new Load(worker);
      this.byWorker.set(worker, load);
    }
    return load;
  }

  /** The load of a worker that steals in this round. */
  thief(worker: WorkerView): Load | undefined {
    const load = this.byWorker.get(worker);
    return load?.isThief === true ? load : undefined;
  }
}
