/** Functions and values on their way between client and workers. */
export { type ActorClass, type ActorClassOf, type AnyClass, isActorClass } from './actor-class.ts';
export { ActorHost, actorLost } from './actor-host.ts';
export type { ActorDescription } from './actor-handle.ts';
export {
  actorBehind,
  type ActorCaller,
  type ActorHandle,
  type ActorRequest,
  readResult,
} from './actor-handle.ts';
export { type PackedArguments, packArguments, unpackArguments, unpackWith } from './arguments.ts';
export { warnUnasked } from './kept-result.ts';
export { ContentHash } from './content-hash.ts';
export { concurrent } from './define-tasks.ts';
export {
  callingRun,
  type ClusterReach,
  currentRun,
  currentTask,
  type RunContext,
  type RunSlot,
  type TaskContext,
  type TaskSurroundings,
} from './context.ts';
export {
  type DefinedTask,
  defineTasks,
  foreignFunction,
  isTaskFunction,
  taskOf,
} from './define-tasks.ts';
export type { AnyFunction, TaskFunction, TaskFunctionOf } from './define-tasks.ts';
export { AllowedModules } from './modules.ts';
export { codeRootAt } from './modules.ts';
export { commonName, travellingFunction } from './modules.ts';
export { importingTaskModule, loadFunction } from './load-function.ts';
export { describeFailure } from './context.ts';
export { foldStack, userFrame } from './context.ts';
export { loadCall, type RunOptions, runTask, startTask } from './run-task.ts';
export { ScatteredValue } from './pieces.ts';
export { refusalBytes } from './context.ts';
export { memoriesOf, withSharedMemory } from './small-values.ts';
export { typeName } from '../../core/util/values.ts';
export { deserialise, isCanonical, notSerialisable, serialise } from './serialise.ts';
export { sourceVersion } from './modules.ts';
