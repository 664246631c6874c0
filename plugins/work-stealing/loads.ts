import type { WorkerLoad, WorkerView } from '../../core/api/index.ts';

/** The load of a worker as it was when the round first looked at it, with what was asked for since. */
export class Load implements WorkerLoad {
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
