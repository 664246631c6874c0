import { type Builtins, token, type Token } from '../../api/plugin.ts';
import type { KernelSlotName, KernelSlots } from '../../api/policies.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { Named } from '../../kernel/ports.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { BUILTINS, LOADED_CONFIG } from '../../plugin-host/injection/tokens.ts';
import {
  checkClientPolicies,
  loadBlueprints,
  loadPolicies,
  loadShadows,
} from '../../plugin-host/loading/load-extensions.ts';
import type { Blueprint } from '../../plugin-host/loading/plugin-blueprint.ts';
import { type PluginResolver, RESOLVER } from '../../plugin-host/loading/plugin-resolver.ts';
import { ProblemList } from '../../plugin-host/loading/problem-list.ts';
import { PLUGINS, type PluginTable } from './plugin-table.ts';
import { type PolicySlotTable, SLOTS } from '../../plugin-host/policy-slots.ts';

export const CONFIGURED_EXTENSIONS: Token<ConfiguredExtensions> = token('configured-extensions');

/** The policies and plugins that a configuration names, loaded and checked; none is set up here. */
export class ConfiguredExtensions {
  /** Policies that are to be compared with those in charge. */
  shadows: ReadonlyMap<KernelSlotName, Named<KernelSlots[KernelSlotName]>> = new Map();
  blueprints: readonly Blueprint[] = [];

  constructor(
    @inject(LOADED_CONFIG) private readonly loaded: LoadedConfig,
    @inject(BUILTINS) private readonly builtins: Builtins,
    @inject(RESOLVER) private readonly resolver: PluginResolver,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
    @inject(PLUGINS) private readonly plugins: PluginTable,
  ) {}

  /** @throws YardmasterError with every problem */
  async load(): Promise<void> {
    const { resolver, loaded, slots } = this;
    const problems = new ProblemList(loaded.origin);
    await problems.attempt(undefined, () => loadPolicies(slots, resolver, loaded));
    await problems.attempt(undefined, async () => {
      this.shadows = await loadShadows(resolver, loaded);
    });
    await problems.attempt(undefined, () => checkClientPolicies(resolver, loaded));
    await problems.attempt(undefined, async () => {
      this.blueprints = await loadBlueprints(resolver, loaded, this.builtins);
    });
    problems.throwIfAny();
  }

  /** Policies and plugins as a tree for people. */
  report(): string {
    const lines = Object.entries(this.slots.names).map(([slot, name]) => {
      const shadow = this.shadows.get(slot as KernelSlotName);
      return `- ${slot}: ${name}${shadow === undefined ? '' : ` (in its shadow: ${shadow.name})`}`;
    });
    return ['policies', ...lines, 'plugins', this.plugins.report(this.blueprints)].join('\n');
  }
}
