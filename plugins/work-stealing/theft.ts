import type { TaskView, Theft } from '../../core/api/index.ts';
import type { Load } from './loads.ts';

/** One object is filled in for one task after the other: a round considers tens of thousands. */
export class MutableTheft implements Theft {
  computeS: number;
  thiefTransferS = 0;
  victimTransferS = 0;

  constructor(
    public task: TaskView,
    public victim: Load,
    public thief: Load,
  ) {
    this.computeS = task.prefix.durationEstimateS;
  }
}
