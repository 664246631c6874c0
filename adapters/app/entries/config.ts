/**
 * `yardmaster/config`: the types of a configuration that is written or read by a program. Guide:
 * `docs/config.md`.
 *
 * @module yardmaster/config
 */
export {
  type AmmConfig,
  type BytesInput,
  type Config,
  type ConfigInput,
  type CoordinationConfig,
  defineConfig,
  type DurationInput,
  type ExtensionInput,
  type OnError,
  type PerSlot,
  type PluginEntry,
  type RebalanceConfig,
  type SchedulerConfig,
  type SchedulingConfig,
  type WorkerConfig,
  type WorkerMemoryConfig,
  type WorkStealingConfig,
} from '../../../core/config/types.ts';
export type { ConfigLayers } from '../../../core/config/load.ts';
