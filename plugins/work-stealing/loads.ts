import type { ClusterView, WorkerView } from '../../core/api/index.ts';

/** What a worker has ahead of it, with all that is asked of it and for it. */
export class Load {
  /** Seconds of work, as it was when the round began and with what the round has asked for since. */
  seconds: number;
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

  constructor(readonly worker: WorkerView) {
    this.seconds = worker.occupancyS;
    this.taskCount = worker.processing.size;
    this.threadCount = worker.threadCount;
    this.nbytes = worker.nbytes;
    this.rank = worker.rank;
    this.isStuck = worker.status !== 'running';
  }

  /** Seconds until it would run dry. */
  get perThreadS(): number {
    return this.seconds / this.threadCount;
  }
}

/** The loads of workers, made when they are first asked for. */
export class Loads {
  private readonly byWorker = new Map<WorkerView, Load>();

  /** Books what has been asked before and not been answered. O(steals in flight). */
  constructor({ steals }: ClusterView) {
    for (const { victim, thief, victimS, thiefS } of steals.values()) {
      this.of(victim).seconds -= victimS;
      this.of(victim).taskCount--;
      this.of(thief).seconds += thiefS;
      this.of(thief).taskCount++;
    }
  }

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
