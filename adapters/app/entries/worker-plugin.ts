/**
 * `yardmaster/worker-plugin`: for authors of plugins that run in workers and nannies, and of modules that
 * are loaded before anything starts. Guide: `docs/plugins.md`.
 *
 * @module yardmaster/worker-plugin
 */
export * from '../../../core/api/local-plugins.ts';
export { PLUGIN_API_VERSION } from '../../../core/api/plugin.ts';
export type { Logger } from '../../../core/api/plugin.ts';
export type { HookResult } from '../../../core/api/hooks.ts';
export type { Clock, Timer } from '../../../core/api/clock.ts';
export { YardmasterError } from '../../../core/api/errors.ts';
export type { WorkerIdentity, WorkerStatus } from '../../../core/state/worker.ts';
export type { WorkerTaskStateName } from '../../../core/state/state-names.ts';
export type { LocalEntry } from '../../../core/plugin-host/local-plugins.ts';
