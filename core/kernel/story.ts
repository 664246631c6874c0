import type { TransitionRecord } from '../api/insight.ts';
import type { TaskStateName } from '../state/state-names.ts';
import { nextInRing } from '../util/collections.ts';

/** Recommendations kept for each record, on average over the ring: a step has rarely more than one. */
const NOTES_PER_RECORD = 2;
const NOTES_MIN = 1024;

/**
 * The newest transitions, in a ring that can be asked by key or stimulus.
 *
 * Columns rather than an object for each record: a hundred thousand long-lived objects would be most
 * of what the garbage collector has to copy while a graph is submitted.
 */
export class Story {
  private readonly keys: string[] = [];
  private readonly starts: TaskStateName[] = [];
  private readonly finishes: TaskStateName[] = [];
  private readonly timesMs: number[] = [];
  /** Position in {@link stimulusIds} for each record; a stimulus has several records. */
  private readonly stimuli: number[] = [];
  /** The index at which the notes of each record begin, and their number. */
  private readonly noteStarts: number[] = [];
  private readonly noteCounts: number[] = [];
  private next = 0;

  private readonly stimulusIds: string[] = [];
  private stimulus = -1;
  private stimulusId = '';
  private isStimulusKept = false;

  /** The recommendations of all records, in a separate ring. */
  private readonly notedKeys: string[] = [];
  private readonly notedTargets: TaskStateName[] = [];
  private readonly notesMax: number;
  private nextNote = 0;
  /** Since the last reset; the marks count from there. */
  private noted = 0;
  private isInStep = false;

  /**
   * @param lengthMax - records kept; 0 keeps none. Recommendations are kept for at least this many
   *   records with two each; of wider steps the oldest go first.
   */
  constructor(private readonly lengthMax: number) {
    this.notesMax = Math.max(NOTES_MIN, lengthMax * NOTES_PER_RECORD);
  }

  /** Begins a stimulus: the transitions that follow were caused by it. */
  begin(stimulusId: string): void {
    this.stimulusId = stimulusId;
    this.isStimulusKept = false;
  }

  /** Start of a step: what is noted from here on belongs to it. */
  mark(): number {
    this.isInStep = this.lengthMax > 0;
    return this.noted;
  }

  /** End of the outermost step: what is recommended between two steps belongs to none. */
  endStep(): void {
    this.isInStep = false;
    this.noted = 0;
  }

  /** The step recommends something. No-op between two steps. */
  note(key: string, target: TaskStateName): void {
    if (!this.isInStep) return;
    this.notedKeys[this.nextNote] = key;
    this.notedTargets[this.nextNote] = target;
    this.nextNote = nextInRing(this.nextNote, this.notesMax);
    this.noted++;
  }

  /** The step that began at the mark is done. */
  record(
    mark: number,
    key: string,
    start: TaskStateName,
    finish: TaskStateName,
    atMs: number,
  ): void {
    if (this.lengthMax === 0) return;
    if (!this.isStimulusKept) this.keepStimulus();
    const { next } = this;
    const count = this.noted - mark;
    this.keys[next] = key;
    this.starts[next] = start;
    this.finishes[next] = finish;
    this.timesMs[next] = atMs;
    this.stimuli[next] = this.stimulus;
    this.noteStarts[next] = this.nextNote - count;
    this.noteCounts[next] = count;
    this.next = nextInRing(next, this.lengthMax);
  }

  /** All records, oldest first. */
  all(): TransitionRecord[] {
    const records: TransitionRecord[] = [];
    const length = this.keys.length;
    let notesLeft = this.notesMax;
    for (let age = 1; age <= length; age++) {
      const position = (this.next - age + length) % length;
      notesLeft -= this.noteCounts[position] as number;
      records.push(this.render(position, notesLeft >= 0));
    }
    return records.reverse();
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

  /**
   * A stimulus that causes nothing is not kept: so there are never more stimuli than records, and the
   * ring of their ids is as long.
   */
  private keepStimulus(): void {
    this.stimulus = nextInRing(this.stimulus, this.lengthMax);
    this.stimulusIds[this.stimulus] = this.stimulusId;
    this.isStimulusKept = true;
  }

  private render(position: number, hasNotes: boolean): TransitionRecord {
    const recommendations = new Map<string, TaskStateName>();
    const count = hasNotes ? (this.noteCounts[position] as number) : 0;
    for (let n = 0; n < count; n++) {
      const start = this.noteStarts[position] as number;
      const note = (start + n + this.notesMax) % this.notesMax;
      recommendations.set(this.notedKeys[note] as string, this.notedTargets[note] as TaskStateName);
    }
    return {
      key: this.keys[position] as string,
      start: this.starts[position] as TaskStateName,
      finish: this.finishes[position] as TaskStateName,
      recommendations: [...recommendations],
      stimulusId: this.stimulusIds[this.stimuli[position] as number] as string,
      atMs: this.timesMs[position] as number,
    };
  }
}
