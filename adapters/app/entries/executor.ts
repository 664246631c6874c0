/**
 * `yardmaster/executor`: for authors of what runs tasks in a worker and keeps its results, and for programs
 * that start such a worker. Guide: `docs/transports.md`.
 *
 * @module yardmaster/executor
 */
export {
  type AbortRun,
  type ActorCall,
  type AsidePlace,
  defineExecutor,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
  type ExecutorDefinition,
  RunAborted,
  type RunSettings,
  type TaskCall,
  type TaskSlot,
  type TaskStack,
} from '../../../core/api/executor.ts';
export {
  defineStore,
  type ResultStore,
  type StoreDefinition,
  type StoredResult,
} from '../../../core/api/result-store.ts';
export type { ErrorPayload } from '../../../core/messages/protocol.ts';
export { type RunningWorker, startWorker } from '../start-worker.ts';
export type { StartWorkerOptions } from '../start-worker.ts';
export { InlineExecutor } from '../../executors/inline.ts';
