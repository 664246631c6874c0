import type { WorkerState } from './worker.ts';

/** A task was asked back from the worker that is processing it, and there is no answer yet. */
export interface Steal {
  readonly victim: WorkerState;
  readonly thief: WorkerState;
  /** Seconds of work that the victim will be rid of. */
  readonly victimS: number;
  /** Seconds of work that the thief will get. */
  readonly thiefS: number;
}

/**
 * What stealing has come to for a task that is still processing: its worker refused because it had
 * begun, or the task came to its worker from that other one.
 */
export type StealOutcome = 'refused' | WorkerState;
