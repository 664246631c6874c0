/** The client: everything a user of a cluster needs. */
export * from './client.ts';
export type * from './amm-control.ts';
export * from './cluster-access.ts';
export type * from './connect-options.ts';
export * from './coordination.ts';
export * from './diagnostics-access.ts';
export type { FutureStatus } from './entry.ts';
export type { FetchOptions } from './fetcher.ts';
export { type CancelOptions, Future } from './future.ts';
export * from './graph.ts';
export type * from './hardware.ts';
export type { ComputationReason } from './kept-results.ts';
export { Lease } from './leases.ts';
export type * from './options.ts';
export * from './progress.ts';
export type { ScatterOptions } from './scatter.ts';
export type { Reconnected } from './session.ts';
export {
  asCompleted,
  type ChunkOptions,
  type Completions,
  type FirstOptions,
  type Items,
  type StreamedBy,
  type StreamOptions,
  wait,
  type WaitOptions,
  type WaitResult,
} from './streams.ts';
export { type ComputedFutures, Submitter } from './submitter.ts';
export { workerClient } from './worker-client.ts';
export * from './worker-access.ts';
