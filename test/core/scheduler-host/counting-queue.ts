import { StimulusQueue } from '../../../core/scheduler-host/stimulus-queue.ts';

/** Counts the stimuli by kind. */
export class CountingQueue extends StimulusQueue {
  readonly counts = new Map<string, number>();

  override put(stimulus: Parameters<StimulusQueue['put']>[0]): void {
    this.counts.set(stimulus.op, (this.counts.get(stimulus.op) ?? 0) + 1);
    super.put(stimulus);
  }
}
