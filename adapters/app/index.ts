/**
 * The public entry of the package. Modules of tasks import it in every thread of every worker, so it
 * loads little: what makes a scheduler or a worker is loaded when one is started.
 */
import type { Scheduler } from '../../core/compose/scheduler.ts';
import type { SchedulerOptions } from './start-scheduler.ts';

export * from '../../core/api/index.ts';
export type {
  AddPluginOptions,
  CreateSchedulerOptions,
  PluginInfo,
  Scheduler,
} from '../../core/compose/scheduler.ts';
export type { SchedulerPolicies } from '../../core/compose/policy-desk.ts';
export type { HookCounters } from '../../core/compose/hook-table.ts';
export type { TransportInput } from '../../core/compose/transport-table.ts';
export {
  type AmmConfig,
  type BytesInput,
  type Config,
  type ConfigInput,
  type CoordinationConfig,
  defineConfig,
  type DurationInput,
  type ExtensionInput,
  type OnError,
  type PerSlot,
  type PluginEntry,
  type RebalanceConfig,
  type SchedulerConfig,
  type SchedulingConfig,
  type WorkerConfig,
  type WorkerMemoryConfig,
  type WorkStealingConfig,
} from '../../core/config/types.ts';
export type { ConfigLayers } from '../../core/config/layers.ts';
export type { TransitionRecord } from '../../core/kernel/story.ts';
export * from '../client/index.ts';
export * from '../scheduling/index.ts';
export {
  arrow,
  type ArrowStream,
  type DType,
  keywords,
  type Keywords,
  ndarray,
  type NdArray,
  python,
  type TypedArray,
} from '../python/index.ts';
export { SystemClock } from '../clock/index.ts';
export { MsgpackCodec } from '../codec-msgpack/index.ts';
export {
  type ActorClass,
  type ActorClassOf,
  type ActorHandle,
  type AnyClass,
  type AnyFunction,
  currentTask,
  type DefinedTask,
  defineTasks,
  isTaskFunction,
  type TaskContext,
  type TaskFunction,
  type TaskFunctionOf,
  taskOf,
} from '../tasks/index.ts';
export type { AdaptOptions } from './adaptive.ts';
export { type ClusterMode, LocalCluster, type LocalClusterOptions } from './local-cluster.ts';
export type { SchedulerOptions } from './start-scheduler.ts';

/**
 * Makes a scheduler that knows what is built in: `await createScheduler({ config: 'cluster.yaml' })`,
 * then `await scheduler.listen()`.
 *
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: SchedulerOptions = {}): Promise<Scheduler> {
  const { createScheduler: create } = await import('./start-scheduler.ts');
  return create(options);
}
