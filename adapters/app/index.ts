/**
 * The public entry of the package. Modules of tasks import it in every thread of every worker, so it
 * loads little: what makes a scheduler or a worker is loaded when one is started.
 */
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { SchedulerOptions } from './start-scheduler.ts';

export * from '../../core/api/index.ts';
export type { AddPluginOptions, PluginInfo } from '../../core/plugin-host/plugin-info.ts';
export type { CreateSchedulerOptions, Scheduler } from '../../core/scheduler-host/scheduler.ts';
export type { SchedulerPolicies } from '../../core/scheduler-host/commands/policy-admin.ts';
export type { HookCounters } from '../../core/plugin-host/hook-table.ts';
export type { TransportInput } from '../../core/host/transport-table.ts';
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
export type { TransitionRecord } from '../../core/kernel/insight/story.ts';
export * from '../client/index.ts';
export * from '../mars/index.ts';
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
} from '../dask/python/index.ts';
export { SystemClock } from '../clocks/index.ts';
export { MsgpackCodec } from '../codecs/msgpack/index.ts';
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
