import type { TaskStateName } from '../state/task-state-name.ts';

export interface TransitionRecord {
  readonly key: string;
  readonly start: TaskStateName;
  /** State that was reached, which is not always the one that was asked for. */
  readonly finish: TaskStateName;
  readonly recommendations: readonly (readonly [key: string, target: TaskStateName])[];
  readonly stimulusId: string;
  readonly atMs: number;
}
