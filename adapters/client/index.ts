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
} from './cluster-access.ts';
export { CoordinationAccess, type LoggedEvent } from './coordination.ts';
export { EventFlag } from './coordination.ts';
export { Lease } from './leases.ts';
export { Queue, type QueueOptions } from './coordination.ts';
export { Lock, Semaphore, type SemaphoreOptions, type SemaphoreState } from './coordination.ts';
export type { TopicEvent, TopicHandler } from './coordination.ts';
export type { WaitLimit } from './coordination.ts';
export { Variable } from './coordination.ts';
export {
  type ClusterLogs,
  type ClusterVersions,
  DiagnosticsAccess,
  type InspectOptions,
  type LogOptions,
  type UnansweredWorker as Silent,
  type Versions,
} from './diagnostics-access.ts';
export type { FutureStatus } from './entry.ts';
export type { FetchOptions } from './fetcher.ts';
export { type CancelOptions, Future } from './future.ts';
export { type Graph, type ResultIn, task, TaskNode } from './graph.ts';
export { all } from './graph.ts';
export { Ref, ref } from './graph.ts';
export type { PolicyControl } from './cluster-access.ts';
export type { SubmitOptions, TaskOptions } from './options.ts';
export type { ResultStoreOption } from './options.ts';
export type { RetryRules } from './options.ts';
export type { ScatterOptions } from './scatter.ts';
export type { Reconnected } from './session.ts';
export { type ComputedFutures, Submitter } from './submitter.ts';
export type {
  Argument,
  ArgumentsOf,
  ColumnsOf,
  Gathered,
  GraphArgument,
  GraphArgumentsOf,
} from './options.ts';
export { progress, type Progress, type ProgressCounts, type ProgressOptions } from './progress.ts';
export { showProgress, type ShowProgressOptions } from './progress.ts';
export { asCompleted, wait, type WaitOptions, type WaitResult } from './streams.ts';
export { workerClient } from './worker-client.ts';
export type { BenchmarkOptions, HardwareFigures } from './hardware.ts';
export { type RunOutcome as Ran, type RunOptions, WorkerRunner } from './cluster-access.ts';
export {
  type AskOptions,
  type CallStack,
  type CallStacks,
  type ConnectionCounters,
  type Restarted,
  type RestartOptions,
  WorkerAccess,
} from './worker-access.ts';
export type { WorkerPluginEntry } from './cluster-access.ts';
