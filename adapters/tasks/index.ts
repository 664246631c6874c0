/** Functions and values on their way between client and workers. */
export * from './actor-class.ts';
export * from './actor-handle.ts';
export { ActorHost, actorLost } from './actor-host.ts';
export * from './arguments.ts';
export type { ChunkResult } from './chunk.ts';
export { ContentHash } from './content-hash.ts';
export * from './context.ts';
export * from './define-tasks.ts';
export {
  completedKey,
  type ComputedBecause,
  digestKey,
  readTrace,
  warnUnasked,
} from './kept-result.ts';
export { importingTaskModule, loadFunction } from './load-function.ts';
export * from './modules.ts';
export { ScatteredValue } from './pieces.ts';
export * from './run-task.ts';
export * from './serialise.ts';
export { memoriesOf, withSharedMemory } from './small-values.ts';
export { typeName } from '../../core/util/values.ts';
