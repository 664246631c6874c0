import type { NewStimulus } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';

/** A stimulus that may still lack its id. */
export type IncomingStimulus = NewStimulus & { readonly stimulusId?: string };

/**
 * Stimuli in the order in which they came, handled one at a time. One that comes while another is
 * being handled waits; so a hook that enqueues never enters the kernel again.
 */
export class StimulusQueue {
  private readonly waiting: Stimulus[] = [];
  private counter = 0;
  private busy = false;

  /** A stimulus is being handled. */
  get isBusy(): boolean {
    return this.busy;
  }

  /** A name that no stimulus has had: `task-finished-17`. */
  nextId(op: string): string {
    return `${op}-${++this.counter}`;
  }

  /** Without an id, or with an empty one, it gets one. */
  push(stimulus: IncomingStimulus): void {
    if (stimulus.stimulusId !== undefined && stimulus.stimulusId !== '') {
      this.waiting.push(stimulus as Stimulus);
    } else {
      this.waiting.push({ ...stimulus, stimulusId: this.nextId(stimulus.op) });
    }
  }

  /**
   * Handles all waiting stimuli, including those that arrive meanwhile. No-op when it is running
   * already.
   */
  drain(handle: (stimulus: Stimulus) => void): void {
    if (this.busy) return;
    this.busy = true;
    try {
      // By index: shifting a long array costs as much as the array is long.
      for (let index = 0; index < this.waiting.length; index++) {
        handle(this.waiting[index] as Stimulus);
      }
    } finally {
      this.waiting.length = 0;
      this.busy = false;
    }
  }

  clear(): void {
    this.waiting.length = 0;
  }
}
