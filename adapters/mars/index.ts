/** Mars' scheduling service as an API. */
export type { PriorityTuple } from './mars.ts';
export type {
  CancelledSubtasks,
  CancelSubtasksOptions,
  FinishSubtasksOptions,
  SchedulingApiOptions,
  SubtaskPriority,
} from './mars.ts';
export { SchedulingApi } from './mars.ts';
export type { Subtask, SubtaskScheduleSummary } from './mars.ts';
