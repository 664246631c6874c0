/** Supervises workers in separate processes. */
export { RESTART_RULES, restartDelayMs, type RestartRules } from './backoff.ts';
export type { ExitReason as LastWords, RestartEvent } from './messages.ts';
export { Nanny, type NannyOptions, type NannyPluginSet } from './nanny.ts';
export { NannyLink, type SupervisedWorker } from './supervised.ts';
