/**
 * The contracts of all roles together, with the messages: what our own plugins, policies and adapters
 * import. Authors import the entry of their role (`adapters/app/entries`).
 */
export * from './amm.ts';
export * from './amm-manager.ts';
export * from './channel.ts';
export * from './clock.ts';
export * from './definition.ts';
export * from './errors.ts';
export * from './hooks.ts';
export * from './executor.ts';
export * from './insight.ts';
export * from './local-plugins.ts';
export * from './plugin.ts';
export * from './policies.ts';
export * from './result-store.ts';
export * from './rules.ts';
export * from './transport.ts';
export * from './views.ts';
export type * from '../messages/protocol.ts';
export * from '../messages/protocol.ts';
export { OPERATIONS, reportId } from '../messages/operations.ts';
export type * from '../messages/stimulus.ts';
export type * from '../messages/to-client.ts';
export { LOST_INPUT, UNKNOWN_KEY } from '../messages/to-client.ts';
export type * from '../messages/to-worker.ts';
export type { ActionTiming } from '../state/groups.ts';
export { SERVICE_PREFIX } from '../state/cluster.ts';
export { groupOfKey, prefixOfKey } from '../state/groups.ts';
export { MEMORY_MEASURES, type MemoryMeasure, MemoryState } from '../state/worker.ts';
export type { Restrictions } from '../state/task.ts';
export type { Priority, TaskFailure } from '../state/task.ts';
export { TASK_STATE_NAMES, type TaskStateName } from '../state/state-names.ts';
export type { LostWorker, WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
export type { WorkerTaskStateName } from '../state/state-names.ts';
