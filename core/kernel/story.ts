import type { TaskStateName } from '../state/task-state-name.ts';
import type { RecommendationStack } from './recommendations.ts';

/** One executed transition. */
export interface TransitionRecord {
  readonly key: string;
  readonly start: TaskStateName;
  /** State that was reached, which is not always the one that was asked for. */
  readonly finish: TaskStateName;
  readonly recommendations: readonly (readonly [key: string, target: TaskStateName])[];
  readonly stimulusId: string;
  readonly atMs: number;
}

/** A slot of the ring; reused, so that recording allocates nothing. */
interface Slot {
  key: string;
  start: TaskStateName;
  finish: TaskStateName;
  /** Key, target, key, target, …; what is behind the length is left over from another record. */
  readonly recommendations: string[];
  recommendationsLength: number;
  /** Position of the stimulus in the ring of their ids. */
  stimulus: number;
  atMs: number;
}

/** What happened lately: a ring of transitions, to be asked by key or stimulus. */
export class Story {
  private readonly slots: Slot[] = [];
  private next = 0;
  /**
   * Ids of the stimuli of these records. Apart, because a stimulus has several records, and writing a
   * new string into a long-lived object is what the garbage collector has to remember each time.
   */
  private readonly stimulusIds: string[] = [];
  private stimulus = -1;

  /** @param lengthMax - records kept; 0 keeps none */
  constructor(private readonly lengthMax: number) {}

  record(
    key: string,
    start: TaskStateName,
    finish: TaskStateName,
    stimulusId: string,
    atMs: number,
    recommendations: RecommendationStack,
    mark: number,
  ): void {
    if (this.lengthMax === 0) return;
    const stimulus = this.stimulusAt(stimulusId);
    let slot = this.slots[this.next];
    if (slot === undefined) {
      slot = {
        key,
        start,
        finish,
        recommendations: [],
        recommendationsLength: 0,
        stimulus,
        atMs,
      };
      this.slots.push(slot);
    } else {
      slot.key = key;
      slot.start = start;
      slot.finish = finish;
      slot.stimulus = stimulus;
      slot.atMs = atMs;
    }
    slot.recommendationsLength = recommendations.copySince(mark, slot.recommendations);
    this.next = (this.next + 1) % this.lengthMax;
  }

  /** All records, oldest first. */
  all(): TransitionRecord[] {
    const oldestFirst =
      this.slots.length < this.lengthMax
        ? this.slots
        : [...this.slots.slice(this.next), ...this.slots.slice(0, this.next)];
    return oldestFirst.map((slot) => render(slot, this.stimulusIds[slot.stimulus] as string));
  }

  /** There are never more stimuli than records, so the ring of their ids is as long. */
  private stimulusAt(stimulusId: string): number {
    if (this.stimulusIds[this.stimulus] !== stimulusId) {
      this.stimulus = (this.stimulus + 1) % this.lengthMax;
      this.stimulusIds[this.stimulus] = stimulusId;
    }
    return this.stimulus;
  }

  /**
   * Records about these keys or stimuli, oldest first: the transitions of a key, those that recommend
   * something for it, and those that a stimulus caused. O(length of the ring).
   */
  about(keysOrStimuli: Iterable<string>): TransitionRecord[] {
    const asked = new Set(keysOrStimuli);
    return this.all().filter(
      (record) =>
        asked.has(record.key) ||
        asked.has(record.stimulusId) ||
        record.recommendations.some(([key]) => asked.has(key)),
    );
  }
}

function render(slot: Slot, stimulusId: string): TransitionRecord {
  const recommendations = new Map<string, TaskStateName>();
  for (let index = 0; index < slot.recommendationsLength; index += 2) {
    recommendations.set(
      slot.recommendations[index] as string,
      slot.recommendations[index + 1] as TaskStateName,
    );
  }
  const { key, start, finish, atMs } = slot;
  return { key, start, finish, recommendations: [...recommendations], stimulusId, atMs };
}
