/** The client: everything a user of a cluster needs. */
export { Client, type GatherOptions } from './client.ts';
export type { ConnectOptions } from './connect-options.ts';
export type { AmmControl } from './amm-control.ts';
export {
  ClusterAccess,
  type Rebalanced,
  type RebalanceOptions,
  type ReplicateOptions,
  type RestartedWorkers,
  type RestartWorkersOptions,
  type Retired,
  type RetireOptions,
  type SchedulerIdentity,
  type WorkerName,
  type WorkersToCloseOptions,
} from './access/cluster-access.ts';
export { CoordinationAccess, type LoggedEvent } from './coordination/access.ts';
export { EventFlag } from './coordination/event-flag.ts';
export { Lease } from './coordination/leases.ts';
export { Queue, type QueueOptions } from './coordination/queue.ts';
export {
  Lock,
  Semaphore,
  type SemaphoreOptions,
  type SemaphoreState,
} from './coordination/semaphore.ts';
export type { TopicEvent, TopicHandler } from './coordination/topics.ts';
export type { WaitLimit } from './coordination/values.ts';
export { Variable } from './coordination/variable.ts';
export {
  type ClusterLogs,
  type ClusterVersions,
  DiagnosticsAccess,
  type InspectOptions,
  type LogOptions,
  type UnansweredWorker as Silent,
  type Versions,
} from './access/diagnostics-access.ts';
export type { FutureStatus } from './session/entry.ts';
export type { FetchOptions } from './session/fetcher.ts';
export { type CancelOptions, Future } from './future.ts';
export { type Graph, type ResultIn, task, TaskNode } from './submission/graph.ts';
export { all } from './submission/all.ts';
export { Ref, ref } from './submission/ref.ts';
export type { PolicyControl } from './access/policy-control.ts';
export type { SubmitOptions, TaskOptions } from './submission/options.ts';
export type { ResultStoreOption } from './submission/result-store-option.ts';
export type { RetryRules } from './submission/retry-rules.ts';
export type { ScatterOptions } from './submission/scatter.ts';
export type { Reconnected } from './session/session.ts';
export { type ComputedFutures, Submitter } from './submission/submitter.ts';
export type {
  Argument,
  ArgumentsOf,
  ColumnsOf,
  Gathered,
  GraphArgument,
  GraphArgumentsOf,
} from './submission/types.ts';
export { progress, type Progress, type ProgressCounts, type ProgressOptions } from './progress.ts';
export { showProgress, type ShowProgressOptions } from './show-progress.ts';
export { asCompleted, wait, type WaitOptions, type WaitResult } from './wait.ts';
export { workerClient } from './worker-client.ts';
export type { BenchmarkOptions, HardwareFigures } from './access/hardware.ts';
export { type RunOutcome as Ran, type RunOptions, WorkerRunner } from './access/run-on-workers.ts';
export {
  type AskOptions,
  type CallStack,
  type CallStacks,
  type ConnectionCounters,
  type Restarted,
  type RestartOptions,
  WorkerAccess,
} from './access/worker-access.ts';
export type { WorkerPluginEntry } from './access/worker-plugins.ts';
