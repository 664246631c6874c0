import { YardmasterError } from '../../api/errors.ts';
import type { HookName } from '../../api/hooks.ts';
import { token, type Token } from '../../api/plugin.ts';
import type { SlotName } from '../../api/policies.ts';
import { type HookRegistry, HOOKS } from '../../plugin-host/hook-table.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { LoadedPlugin } from './loaded-plugin.ts';
import type { Blueprint } from '../../plugin-host/loading/plugin-blueprint.ts';
import type { PluginInfo } from '../../plugin-host/plugin-info.ts';
import { type PolicySlotTable, SLOTS } from '../../plugin-host/policy-slots.ts';

export const PLUGINS: Token<PluginTable> = token('plugins');

/** The plugins of a scheduler that are set up, in order. {@link PluginHost} adds and removes them. */
export class PluginTable {
  readonly byName = new Map<string, LoadedPlugin>();

  constructor(
    @inject(HOOKS) private readonly hooks: HookRegistry,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
  ) {}

  get all(): readonly LoadedPlugin[] {
    return [...this.byName.values()];
  }

  get names(): readonly string[] {
    return [...this.byName.keys()];
  }

  get(name: string): LoadedPlugin | undefined {
    return this.byName.get(name);
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when there is none, or another one requires it */
  removable(name: string): LoadedPlugin {
    const plugin = this.byName.get(name);
    if (plugin === undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `there is no plugin "${name}" to remove; there are ${this.names.join(', ') || 'none'}`,
        { plugin: name },
      );
    }
    const dependent = this.all.find(({ blueprint }) => blueprint.requires.includes(name));
    if (dependent !== undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `plugin "${name}" cannot be removed: plugin "${dependent.name}" requires it; remove that first`,
        { plugin: name, dependent: dependent.name },
      );
    }
    return plugin;
  }

  get infos(): readonly PluginInfo[] {
    return this.all.map(({ blueprint, observer, commands, owner }) => ({
      name: blueprint.name,
      source: blueprint.source,
      onError: blueprint.onError,
      enabled: !observer.isDetached,
      errorCount: observer.errorCount,
      hooks: [...observer.counters].map(([hook, counters]) => {
        return { hook: hook as HookName, ...counters };
      }),
      slots: this.slots.filledBy(owner),
      commands: [...commands.keys()],
    }));
  }

  /** The plugin that fills a slot, if one does. */
  filling(slot: SlotName): LoadedPlugin | undefined {
    return this.all.find(({ owner }) => this.slots.filledBy(owner).includes(slot));
  }

  /**
   * The plugins as a tree for people.
   * @param loaded - plugins of which some may not have been set up
   */
  report(loaded: readonly Blueprint[] = []): string {
    const waiting = loaded.filter(({ name }) => !this.byName.has(name));
    const lines = [
      ...this.all.flatMap((plugin) => this.reportOn(plugin)),
      ...waiting.flatMap(({ name, source, extensions }) => {
        return [`- ${name} (${source})`, ...extensions.map((line) => `    ${line}`)];
      }),
    ];
    return lines.length === 0 ? '- none' : lines.join('\n');
  }

  private reportOn(plugin: LoadedPlugin): string[] {
    const { blueprint, observer, policies, commands, phasesMs } = plugin;
    const hooks = this.hooks.hooksOf(observer);
    const details = [
      ...blueprint.extensions,
      hooks.length > 0 ? `hooks: ${hooks.join(', ')}` : '',
      policies.size > 0 ? `slots: ${[...policies.keys()].join(', ')}` : '',
      commands.size > 0 ? `commands: ${[...commands.keys()].join(', ')}` : '',
    ].filter((detail) => detail !== '');
    const setupMs = Math.round(phasesMs.get('setup') ?? 0);
    return [
      `- ${plugin.name} (${blueprint.source}), set up in ${setupMs} ms`,
      ...details.map((detail) => `    ${detail}`),
    ];
  }
}
