import type { HookName } from '../api/hooks.ts';
import type { SlotName } from '../api/policies.ts';
import type { OnError } from '../config/types.ts';
import type { HookCounters } from './hook-table.ts';

/** How to add a plugin while the scheduler runs. */
export interface AddPluginOptions {
  /** A plugin of the same name stays, and this one is ignored. Default false: it is replaced. */
  readonly idempotent?: boolean;
  /** For a definition or a class; checked against its schema. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Default `log`. */
  readonly onError?: OnError;
}

/** A plugin as people see it. */
export interface PluginInfo {
  readonly name: string;
  /** Where it was loaded from. */
  readonly source: string;
  readonly onError: OnError;
  /** False after its hook threw and `onError` was `disable`. */
  readonly enabled: boolean;
  readonly errorCount: number;
  readonly hooks: readonly (HookCounters & { readonly hook: HookName })[];
  /** Policy slots that it fills. */
  readonly slots: readonly SlotName[];
  readonly commands: readonly string[];
}
