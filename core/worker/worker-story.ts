import type { WorkerTarget, WorkerTaskStateName } from './worker-task.ts';

/** One step of one task. */
export interface WorkerTransitionRecord {
  readonly key: string;
  readonly start: WorkerTaskStateName;
  /** What was recommended. */
  readonly target: WorkerTarget;
  /** The state that was reached. */
  readonly finish: WorkerTaskStateName;
  readonly stimulusId: string;
  readonly atMs: number;
}

/** The last transitions of a worker. */
export class WorkerStory {
  private readonly ring: WorkerTransitionRecord[] = [];
  private next = 0;

  constructor(private readonly lengthMax: number) {}

  add(record: WorkerTransitionRecord): void {
    if (this.lengthMax <= 0) return;
    this.ring[this.next] = record;
    this.next = (this.next + 1) % this.lengthMax;
  }

  /** Records of these tasks and stimuli, oldest first; all when none is named. O(length). */
  query(keysOrStimuli: readonly string[]): WorkerTransitionRecord[] {
    const ordered = [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    if (keysOrStimuli.length === 0) return ordered;
    const wanted = new Set(keysOrStimuli);
    return ordered.filter(({ key, stimulusId }) => wanted.has(key) || wanted.has(stimulusId));
  }
}
