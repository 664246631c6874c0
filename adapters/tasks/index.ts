/** How functions and values travel between client and workers. */
export {
  type ActorClass,
  type ActorClassOf,
  type AnyClass,
  isActorClass,
} from './actors/actor-class.ts';
export { ActorHost, actorLost } from './actors/actor-host.ts';
export type { ActorDescription } from './actors/description.ts';
export {
  actorBehind,
  type ActorCaller,
  type ActorHandle,
  type ActorRequest,
  readResult,
} from './actors/handle.ts';
export { type PackedArguments, packArguments, unpackArguments, unpackWith } from './arguments.ts';
export { ContentHash } from './content-hash.ts';
export { concurrent } from './concurrent.ts';
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
export type { AnyFunction, TaskFunction, TaskFunctionOf } from './task-function.ts';
export { AllowedModules } from './modules/allowed-modules.ts';
export { codeRootAt } from './modules/folders.ts';
export { commonName, travellingFunction } from './modules/travelling-name.ts';
export { importingTaskModule, loadFunction } from './load-function.ts';
export { describeFailure } from './failure.ts';
export { foldStack } from './fold-stack.ts';
export { type RunOptions, runTask, startTask } from './run-task.ts';
export { ScatteredValue } from './scattered-value.ts';
export { refusalBytes } from './refusal.ts';
export { memoriesOf, withSharedMemory } from './shared-parts.ts';
export { typeName } from '../../core/util/type-name.ts';
export { deserialise, isCanonical, serialise } from './serialise.ts';
export { sourceVersion } from './modules/source-version.ts';
