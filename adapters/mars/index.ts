/** Mars' scheduling service as an API. */
export type { PriorityTuple } from './priority-labels.ts';
export type {
  CancelledSubtasks,
  CancelSubtasksOptions,
  FinishSubtasksOptions,
  SchedulingApiOptions,
  SubtaskPriority,
} from './options.ts';
export { SchedulingApi } from './scheduling-api.ts';
export type { Subtask, SubtaskScheduleSummary } from './subtask.ts';
