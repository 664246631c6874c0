import type { WorkerView } from '../../core/api/index.ts';

/** What a worker has ahead of it, with all that is asked of it and for it. */
export class Load {
  /** Seconds of work: as they were when the round began, and what was asked for since. */
  seconds: number;
  /** Seconds until it would run dry. */
  perThreadS: number;
  /** Tasks that are processing there, seceded ones included. */
  taskCount: number;
  readonly threadCount: number;
  /** Ties go to the worker with the fewest stored bytes, then to the lowest rank. */
  readonly nbytes: number;
  readonly rank: number;
  /** It finishes what it runs and begins nothing: its tasks are better off anywhere else. */
  readonly isStuck: boolean;
  /** Whether it takes tasks (more of them) in this round. */
  isThief = false;
  /** Scratch: bytes of the inputs of the task in question that are here. */
  heldBytes = 0;
  /** Scratch: whether it could have the task in question. */
  isCandidate = false;

  constructor(readonly worker: WorkerView) {
    this.seconds = worker.occupancyS + worker.inFlightS;
    this.taskCount = worker.processing.size + worker.inFlightTasks;
    this.threadCount = worker.threadCount;
    this.perThreadS = this.seconds / this.threadCount;
    this.nbytes = worker.nbytes;
    this.rank = worker.rank;
    this.isStuck = worker.status !== 'running';
  }

  /** Books work that is asked of it, or for it. */
  add(seconds: number, tasks: 1 | -1): void {
    this.seconds += seconds;
    this.taskCount += tasks;
    this.perThreadS = this.seconds / this.threadCount;
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
