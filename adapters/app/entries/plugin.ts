/**
 * `yardmaster/plugin`: for authors of scheduler plugins, and for programs that add plugins to a scheduler.
 * Guide: `docs/plugins.md`. Loads next to nothing.
 *
 * @module yardmaster/plugin
 */
export {
  type Builtins,
  type Access,
  type Caller,
  type CommandDeclaration,
  type CommandHandler,
  definePlugin,
  type ExtensionKind,
  type ExtensionLoader,
  type LoadedExtension,
  type Logger,
  type NewStimulus,
  PLUGIN_API_VERSION,
  type PluginContext,
  type PluginDefinition,
  type PluginInstance,
  type PolicyInCharge,
  type SchedulerPlugin,
  type Token,
  token,
  type UseEntry,
  type WantedExtensions,
} from '../../../core/api/plugin.ts';
export type { ParametersOf, ParametersSchema } from '../../../core/api/plugin.ts';
export {
  type GraphUpdate,
  type Hook,
  HOOK_NAMES,
  type HookName,
  type HookResult,
  type HookTable,
  type SchedulerHooks,
  type TransitionDetails,
  type WorkerLoss,
} from '../../../core/api/hooks.ts';
export type { EventName, EventSource, SchedulerEvents } from '../../../core/api/hooks.ts';
export type { DecisionSink, PluginDecision } from '../../../core/api/insight.ts';
export type { Injectable, Provider, Services } from '../../../core/api/token.ts';
export type { Clock, Timer } from '../../../core/api/clock.ts';
export { YardmasterError } from '../../../core/api/errors.ts';
export { ACTIVE_MEMORY_MANAGER, type ActiveMemoryManager } from '../../../core/api/amm-manager.ts';
export type {
  ClientView,
  ClusterView,
  GroupView,
  PrefixView,
  TaskView,
  WorkerView,
} from '../../../core/api/views.ts';
export type { TaskStateName } from '../../../core/state/state-names.ts';
export type { AddPluginOptions, PluginInfo } from '../../../core/plugin-host/plugin-host.ts';
export type { HookCounters } from '../../../core/plugin-host/hook-table.ts';
export type { OnError } from '../../../core/config/types.ts';
