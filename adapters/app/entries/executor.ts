/**
 * `yardmaster/executor`: for authors of what runs tasks in a worker and keeps its results, and for programs
 * that start such a worker. Guide: `docs/transports.md`.
 *
 * @module yardmaster/executor
 */
export * from '../../../core/api/executor.ts';
export * from '../../../core/api/result-store.ts';
export type { ErrorPayload } from '../../../core/messages/protocol.ts';
export { type RunningWorker, startWorker } from '../start-worker.ts';
export type { StartWorkerOptions } from '../start-worker.ts';
export { InlineExecutor, type InlineExecutorOptions } from '../../executors/inline.ts';
export type { ResultStoreOption } from '../../client/index.ts';
export type { ClusterReach } from '../../tasks/index.ts';
export type { WorkerEnd } from '../../../core/worker-host/worker-options.ts';
