import type { TaskView } from '../../core/api/index.ts';
import type { Load } from './loads.ts';

/**
 * A task, where it is, where it could go, and what that takes. One object is filled in for one task
 * after the other: a round considers tens of thousands.
 */
export class Theft {
  /** Seconds that the task is expected to compute. */
  computeS: number;
  /** Seconds to bring the thief the inputs that it lacks. */
  thiefTransferS = 0;
  /** Seconds of transfers that the victim is spared. */
  victimTransferS = 0;

  constructor(
    public task: TaskView,
    public victim: Load,
    public thief: Load,
  ) {
    this.computeS = task.prefix.durationEstimateS;
  }
}
