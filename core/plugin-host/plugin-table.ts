import { token, type Token } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import { type HookRegistry, HOOKS } from './hook-table.ts';
import { inject } from './injection/di.ts';
import type { LoadedPlugin } from './loaded-plugin.ts';
import type { Blueprint } from './loading/plugin-blueprint.ts';
import type { PluginInfo } from './plugin-info.ts';
import { type PolicySlotTable, SLOTS } from './policy-slots.ts';

export const PLUGINS: Token<PluginTable> = token('plugins');

/** The plugins of a scheduler that are set up, in order. {@link PluginLifecycle} adds and removes them. */
export class PluginTable {
  private readonly plugins = new Map<string, LoadedPlugin>();

  constructor(
    @inject(HOOKS) private readonly hooks: HookRegistry,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
  ) {}

  get all(): readonly LoadedPlugin[] {
    return [...this.plugins.values()];
  }

  get names(): readonly string[] {
    return [...this.plugins.keys()];
  }

  get(name: string): LoadedPlugin | undefined {
    return this.plugins.get(name);
  }

  /** One of the same name is replaced, and keeps its place. */
  add(plugin: LoadedPlugin): void {
    this.plugins.set(plugin.name, plugin);
  }

  delete(name: string): void {
    this.plugins.delete(name);
  }

  get infos(): readonly PluginInfo[] {
    return this.all.map(({ blueprint, observer, commands, owner }) => ({
      name: blueprint.name,
      source: blueprint.source,
      onError: blueprint.onError,
      enabled: !observer.isDetached,
      errorCount: observer.errorCount,
      hooks: [...observer.counters].map(([hook, counters]) => ({ hook, ...counters })),
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
    const waiting = loaded.filter(({ name }) => !this.plugins.has(name));
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
