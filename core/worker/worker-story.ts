import { nextInRing } from '../util/collections.ts';
import type { WorkerTarget, WorkerTaskStateName } from './worker-task.ts';

/** One step of one task. */
export interface WorkerTransitionRecord {
  readonly key: string;
  readonly start: WorkerTaskStateName;
  /** The recommended state. */
  readonly target: WorkerTarget;
  /** The state that was reached. */
  readonly finish: WorkerTaskStateName;
  readonly stimulusId: string;
  readonly atMs: number;
}

/** The last transitions of a worker: a ring of columns, since there are several of them for each task. */
export class WorkerStory {
  private readonly keys: string[] = [];
  private readonly starts: WorkerTaskStateName[] = [];
  private readonly targets: WorkerTarget[] = [];
  private readonly finishes: WorkerTaskStateName[] = [];
  private readonly stimulusIds: string[] = [];
  private readonly timesMs: number[] = [];
  private next = 0;

  /** @param lengthMax - records kept; 0 keeps none */
  constructor(private readonly lengthMax: number) {}

  /** The fields of a {@link WorkerTransitionRecord}, in their order. */
  add(
    key: string,
    start: WorkerTaskStateName,
    target: WorkerTarget,
    finish: WorkerTaskStateName,
    stimulusId: string,
    atMs: number,
  ): void {
    if (this.lengthMax <= 0) return;
    const { next } = this;
    this.keys[next] = key;
    this.starts[next] = start;
    this.targets[next] = target;
    this.finishes[next] = finish;
    this.stimulusIds[next] = stimulusId;
    this.timesMs[next] = atMs;
    this.next = nextInRing(next, this.lengthMax);
  }

  /** Records of these tasks and stimuli, oldest first; all when none is named. O(length). */
  query(keysOrStimuli: readonly string[]): WorkerTransitionRecord[] {
    const { length } = this.keys;
    const wanted = keysOrStimuli.length === 0 ? undefined : new Set(keysOrStimuli);
    const records: WorkerTransitionRecord[] = [];
    for (let age = length; age > 0; age--) {
      const record = this.record((this.next - age + length) % length);
      const isWanted = wanted?.has(record.key) ?? true;
      if (isWanted || wanted?.has(record.stimulusId) === true) records.push(record);
    }
    return records;
  }

  private record(position: number): WorkerTransitionRecord {
    return {
      key: this.keys[position] as string,
      start: this.starts[position] as WorkerTaskStateName,
      target: this.targets[position] as WorkerTarget,
      finish: this.finishes[position] as WorkerTaskStateName,
      stimulusId: this.stimulusIds[position] as string,
      atMs: this.timesMs[position] as number,
    };
  }
}
