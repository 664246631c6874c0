/**
 * `yardmaster/mars`: for programs that were written for Mars' scheduling service. Guide:
 * `docs/scheduling-api.md`.
 *
 * @module yardmaster/mars
 */
export {
  SchedulingApi,
  type SchedulingApiOptions,
  type Subtask,
  type SubtaskPriority,
  type SubtaskScheduleSummary,
} from '../../mars/mars.ts';
