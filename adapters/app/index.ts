/**
 * `yardmaster`: for users of a cluster: the client, tasks, local clusters and schedulers. Modules of tasks
 * import it in every thread of every worker, so it loads little: what makes a scheduler or a worker is
 * loaded when one is started. Other roles have entries of their own.
 *
 * @module yardmaster
 */
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { SchedulerOptions } from './start-scheduler.ts';

export {
  ERROR_CODES,
  type ErrorCode,
  RemoteError,
  YardmasterError,
} from '../../core/api/errors.ts';
export { VERSION } from '../../core/api/plugin.ts';
export { type Config, type ConfigInput, defineConfig } from './config.ts';
export type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
export {
  all,
  type Argument,
  asCompleted,
  type CancelOptions,
  Client,
  type ConnectOptions,
  type FetchOptions,
  Future,
  type FutureStatus,
  type GatherOptions,
  type Graph,
  Ref,
  ref,
  type ScatterOptions,
  type SubmitOptions,
  task,
  TaskNode,
  type TaskOptions,
  wait,
  type WaitOptions,
  type WaitResult,
  workerClient,
} from '../client/index.ts';
export {
  type ActorClass,
  type ActorHandle,
  concurrent,
  currentTask,
  type DefinedTask,
  defineTasks,
  isTaskFunction,
  type TaskContext,
  type TaskFunction,
  taskOf,
} from '../tasks/index.ts';
export type { AdaptOptions } from './adaptive.ts';
export { LocalCluster, type LocalClusterOptions } from './local-cluster.ts';
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
