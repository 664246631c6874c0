/**
 * `yardmaster/plugin`: for authors of plugins of schedulers, workers and nannies, and for programs that add plugins or
 * replace what a scheduler or worker is made of. Guide: `docs/plugins.md`. Loads next to nothing.
 *
 * @module yardmaster/plugin
 */
import { CLOCK, CONFIG, LOGGER, SERVER_ID } from '../../../core/host/tokens.ts';
import { JOURNAL, RECORDER } from '../../../core/scheduler-host/journal.ts';
import { STIMULI } from '../../../core/scheduler-host/tokens.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_OPTIONS } from '../../../core/worker-host/tokens.ts';

export {
  BRIDGE,
  type Bridge,
  type Caller,
  definePlugin,
  type Logger,
  type NewStimulus,
  type PluginContext,
  type PluginDefinition,
  type SchedulerPlugin,
  type Token,
  token,
  type UseEntry,
} from '../../../core/api/plugin.ts';
export {
  defineNannyPlugin,
  defineWorkerPlugin,
  type NannyPlugin,
  type NannyPluginContext,
  type NannyPluginDefinition,
  type PreloadContext,
  type WorkerPlugin,
  type WorkerPluginContext,
  type WorkerPluginDefinition,
} from '../../../core/api/local-plugins.ts';
export type { SchedulerEvents, SchedulerHooks } from '../../../core/api/hooks.ts';
export type { Provider } from '../../../core/api/token.ts';
export type { Clock, Timer } from '../../../core/api/clock.ts';
export { YardmasterError } from '../../../core/api/errors.ts';
export { ACTIVE_MEMORY_MANAGER, type ActiveMemoryManager } from '../../../core/api/amm-manager.ts';
export type { ClientView, ClusterView, TaskView, WorkerView } from '../../../core/api/views.ts';
export type { PluginInfo } from '../../../core/plugin-host/plugin-host.ts';

/**
 * The parts of a scheduler or worker that a program or plugin may replace (`provide`) or ask for: `CLOCK`, `CONFIG`,
 * `LOGGER`, `SERVER_ID`; of a scheduler `JOURNAL`, `RECORDER`, `STIMULI`; of a worker `EXECUTOR`, `WORKER_IDENTITY`,
 * `WORKER_OPTIONS`.
 */
export const tokens = {
  CLOCK,
  CONFIG,
  EXECUTOR,
  JOURNAL,
  LOGGER,
  RECORDER,
  SERVER_ID,
  STIMULI,
  WORKER_IDENTITY,
  WORKER_OPTIONS,
} as const;
