/**
 * `yardmaster/views`: what plugins and policies see of the cluster, with every type that appears there.
 * Guide: `docs/plugins.md`.
 *
 * @module yardmaster/views
 */
export * from '../../../core/api/views.ts';
export type {
  BucketSpec,
  ErrorPayload,
  FunctionSpec,
  PersistSpec,
  RetrySpec,
  StoreSpec,
} from '../../../core/messages/protocol.ts';
export type { ActionTiming } from '../../../core/state/groups.ts';
export { groupOfKey, prefixOfKey } from '../../../core/state/groups.ts';
export { MEMORY_MEASURES, type MemoryMeasure, MemoryState } from '../../../core/state/worker.ts';
export type { Restrictions } from '../../../core/state/task.ts';
export type { Priority, TaskFailure } from '../../../core/state/task.ts';
export { TASK_STATE_NAMES, type TaskStateName } from '../../../core/state/state-names.ts';
export type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../../../core/state/worker.ts';
export type { TransitionRecord } from '../../../core/kernel/story.ts';
