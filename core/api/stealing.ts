/** The policy slot `stealing`: which tasks move from busy workers to idle ones. */
import type { ClusterView, TaskView, WorkerView } from './views.ts';

/**
 * The rules of work stealing. What a policy leaves out is decided by the rules of the built-in policy
 * `dask`; it has at least one of `mayTake`, `victims`, `levelOf`, `order` and `pays`.
 *
 * The plugin `work-stealing` asks the policy in rounds, which it divides into slices: tasks may finish and
 * workers may leave between two calls. The policy that is in charge when a round begins decides all of it.
 */
export interface Stealing {
  /** Called first in every round, for a policy that keeps numbers for the length of a round. */
  begin?(cluster: ClusterView): void;
  /**
   * Whether an idle worker takes a task. Asked when the round begins, and again after each task that the
   * worker was given in the round (`takenCount`); once false, the worker takes no more in this round.
   */
  mayTake?(thief: WorkerLoad): boolean;
  /**
   * The running workers from which tasks are stolen, in this order. Thieves are left out. Workers that
   * are paused or leaving come first in any case, and stealing from them always pays.
   * @param loadOf - the load of a worker; O(prefixes processing there) for the first call in a round
   */
  victims?(cluster: ClusterView, loadOf: (worker: WorkerView) => WorkerLoad): Iterable<WorkerView>;
  /**
   * The cost level of a task, from 0 (stolen first) to 14; `undefined`: the task is not stolen in this
   * round. Called once for each task of a victim that has not been asked back already.
   * @param level - the level by Dask's rule: the time to transfer the inputs compared with the time to
   *   compute; 0 without inputs, 6 for equal times, each level twice the one below; `undefined` for a task
   *   whose transfer would take more than 256 times as long
   */
  levelOf?(task: TaskView, level: number | undefined): number | undefined;
  /**
   * Which of two tasks of one level on one worker is stolen first, as for a sort. Default, also for
   * equal ones: the task that would run last.
   */
  order?(a: TaskView, b: TaskView): number;
  /** Whether the task moves. Called for the thief that could begin the task first. */
  pays?(theft: Theft): boolean;
  /**
   * Optional bound for {@link pays}, which avoids examining tasks in vain: whether stealing a task
   * of at least `computeS` can pay at all. Must be true whenever `pays` is for such a task.
   * @param leastS - seconds until the first of the thieves has no work left
   * @param computeS - seconds of computation; 0 when no task has been examined
   */
  mayPay?(victim: WorkerLoad, leastS: number, computeS: number): boolean;
}

/** The work ahead of a worker, with all tasks that stealing takes from it and brings to it counted. */
export interface WorkerLoad {
  readonly worker: WorkerView;
  /** Seconds of work. */
  readonly workS: number;
  /** Seconds until it has nothing to do: {@link workS} divided by its threads. */
  readonly perThreadS: number;
  /** Tasks that are processing there, seceded ones included. */
  readonly taskCount: number;
  readonly threadCount: number;
  /** Whether the worker takes tasks in this round. */
  readonly isThief: boolean;
  /** Tasks that it was given in this round. */
  readonly takenCount: number;
}

/**
 * A task, the worker where it waits, and the worker where it could go. The same object is used for one
 * task after the other: read it, and do not keep it.
 */
export interface Theft {
  readonly task: TaskView;
  readonly victim: WorkerLoad;
  readonly thief: WorkerLoad;
  /** Seconds that the task is expected to compute. */
  readonly computeS: number;
  /** Seconds to bring the thief the inputs that it lacks. */
  readonly thiefTransferS: number;
  /** Seconds of transfers that the victim is spared. */
  readonly victimTransferS: number;
}
