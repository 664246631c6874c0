/** How functions and values travel between client and workers. */
export { type PackedArguments, packArguments, unpackArguments, unpackWith } from './arguments.ts';
export { currentRun, currentTask, type RunContext, type TaskContext } from './context.ts';
export {
  type AnyFunction,
  defineTasks,
  isTaskFunction,
  type TaskFunction,
  type TaskFunctionOf,
  taskOf,
} from './define-tasks.ts';
export { importingTaskModule, loadFunction } from './load-function.ts';
export { describeFailure, type RunOptions, runTask } from './run-task.ts';
export { ScatteredValue } from './scattered-value.ts';
export { deserialise, serialise, typeName } from './serialise.ts';
export { sourceVersion } from './source-version.ts';
export { type ClusterReach, LocalSurroundings, type TaskSurroundings } from './surroundings.ts';
