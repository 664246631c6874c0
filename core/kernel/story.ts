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
  stimulusId: string;
  atMs: number;
}

/** What happened lately: a ring of transitions, to be asked by key or stimulus. */
export class Story {
  private readonly slots: Slot[] = [];
  private next = 0;

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
    let slot = this.slots[this.next];
    if (slot === undefined) {
      slot = {
        key,
        start,
        finish,
        recommendations: [],
        recommendationsLength: 0,
        stimulusId,
        atMs,
      };
      this.slots.push(slot);
    } else {
      slot.key = key;
      slot.start = start;
      slot.finish = finish;
      slot.stimulusId = stimulusId;
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
    return oldestFirst.map(render);
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

function render(slot: Slot): TransitionRecord {
  const recommendations = new Map<string, TaskStateName>();
  for (let index = 0; index < slot.recommendationsLength; index += 2) {
    recommendations.set(
      slot.recommendations[index] as string,
      slot.recommendations[index + 1] as TaskStateName,
    );
  }
  const { key, start, finish, stimulusId, atMs } = slot;
  return { key, start, finish, recommendations: [...recommendations], stimulusId, atMs };
}
