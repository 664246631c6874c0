/** Supervises workers in separate processes. */
export { RESTART_RULES, restartDelayMs, type RestartRules } from './nanny.ts';
export type { ExitReason as LastWords, RestartEvent } from './worker-process.ts';
export { Nanny, type NannyOptions, type NannyPluginSet } from './nanny.ts';
export { NannyLink, type SupervisedWorker } from './nanny.ts';
