import { YardmasterError } from '../api/errors.ts';
import { token, type PluginInstance, type Token } from '../api/plugin.ts';
import { inject, injectable } from './injection/di.ts';
import type { Container } from './injection/container.ts';
import { HOOKS, type HookRegistry } from './hook-table.ts';
import { HOST, LoadedPlugin, type PluginHost } from './loaded-plugin.ts';
import { type Blueprint, checkRequired } from './loading/plugin-blueprint.ts';
import { SLOTS, type PolicySlotTable } from './policy-slots.ts';
import { CLOCK, CONTAINER } from './injection/tokens.ts';
import type { Clock } from '../api/clock.ts';
import { withTimeout } from '../host/with-timeout.ts';

export const LIFECYCLE: Token<PluginLifecycle> = token('plugin-lifecycle');

/** Time that a plugin has for each phase of its life. */
const PHASE_TIMEOUT_MS = 10_000;

type Phase = 'setup' | 'start' | 'beforeClose' | 'close';

/**
 * The plugins of a scheduler, in order: setup → attach → start → … → beforeClose → close, the last
 * two in reverse. A plugin that fails to set up or start leaves nothing behind.
 */
@injectable()
export class PluginLifecycle {
  private readonly plugins = new Map<string, LoadedPlugin>();

  constructor(
    @inject(CONTAINER.id) private readonly container: Container,
    @inject(HOST.id) private readonly host: PluginHost,
    @inject(CLOCK.id) private readonly clock: Clock,
    @inject(HOOKS.id) private readonly hooks: HookRegistry,
    @inject(SLOTS.id) private readonly slots: PolicySlotTable,
  ) {}

  get all(): readonly LoadedPlugin[] {
    return [...this.plugins.values()];
  }

  get(name: string): LoadedPlugin | undefined {
    return this.plugins.get(name);
  }

  /**
   * Sets a plugin up and attaches its hooks, policies, commands and services. One of the same name is
   * replaced once the new one is ready, and then closed.
   * @throws YardmasterError `ERR_PLUGIN_SETUP`, `ERR_SLOT`
   */
  async add(blueprint: Blueprint): Promise<LoadedPlugin> {
    checkRequired(blueprint, [...this.plugins.keys()]);
    const plugin = new LoadedPlugin(blueprint, this.container, this.host);
    try {
      const setup = (): Promise<PluginInstance> => blueprint.setup(plugin.context());
      plugin.observer.instance = await this.runPhase(plugin, 'setup', setup);
      const replaced = this.plugins.get(plugin.name);
      this.attach(plugin, replaced);
      if (replaced !== undefined) await this.end(replaced);
    } catch (error) {
      await this.discard(plugin);
      throw error;
    }
    return plugin;
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP`; the plugin is then gone */
  async start(plugin: LoadedPlugin): Promise<void> {
    try {
      await this.runPhase(plugin, 'start', () => plugin.instance.start?.());
    } catch (error) {
      this.detach(plugin);
      await this.end(plugin);
      throw error;
    }
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when there is none, or another one requires it */
  async remove(name: string): Promise<void> {
    const plugin = this.plugins.get(name);
    if (plugin === undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `there is no plugin "${name}" to remove; there are ${[...this.plugins.keys()].join(', ') || 'none'}`,
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
    this.detach(plugin);
    await this.end(plugin);
  }

  /** Takes hooks and policies of a plugin away; it stays in the list until it is removed. */
  disable(name: string): void {
    const plugin = this.plugins.get(name);
    if (plugin === undefined) return;
    this.hooks.remove(plugin.observer);
    this.slots.withdraw(plugin.owner);
    plugin.stop();
    // After a turn: what it has to say itself comes first.
    this.clock.setTimer(0, () => plugin.failAnswers());
    this.host.portsChanged();
  }

  /** First thing when the scheduler closes. Errors are reported. */
  async beforeClose(): Promise<void> {
    for (const plugin of this.all.toReversed()) {
      await this.tryPhase(plugin, 'beforeClose', () => plugin.instance.beforeClose?.());
    }
  }

  /** Closes all, the newest first. Errors are reported. */
  async closeAll(): Promise<void> {
    for (const plugin of this.all.toReversed()) {
      this.plugins.delete(plugin.name);
      this.hooks.remove(plugin.observer);
      await this.end(plugin);
    }
  }

  /**
   * The loaded plugins, as a tree for people.
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

  private attach(plugin: LoadedPlugin, replaced: LoadedPlugin | undefined): void {
    if (replaced !== undefined) this.slots.withdraw(replaced.owner);
    try {
      this.fillSlots(plugin);
      plugin.attach();
      this.hooks.add(plugin.observer, replaced?.observer);
    } catch (error) {
      this.slots.withdraw(plugin.owner);
      plugin.stop();
      if (replaced?.isAttached === true) {
        this.fillSlots(replaced);
        replaced.attach();
      }
      throw error;
    } finally {
      this.host.portsChanged();
    }
    replaced?.stop();
    this.plugins.set(plugin.name, plugin);
  }

  private fillSlots(plugin: LoadedPlugin): void {
    for (const [slot, policy] of plugin.policies) {
      this.slots.provide(slot, { name: plugin.name, policy: policy }, plugin.owner);
    }
  }

  private detach(plugin: LoadedPlugin): void {
    this.plugins.delete(plugin.name);
    this.hooks.remove(plugin.observer);
    this.slots.withdraw(plugin.owner);
    plugin.stop();
    this.host.portsChanged();
  }

  private async end(plugin: LoadedPlugin): Promise<void> {
    plugin.stop();
    await this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
    plugin.failAnswers();
    await plugin.container.dispose();
  }

  /** A plugin that did not get as far as being attached. */
  private async discard(plugin: LoadedPlugin): Promise<void> {
    plugin.stop();
    await this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
    await plugin.container.dispose();
  }

  private async tryPhase(plugin: LoadedPlugin, phase: Phase, run: () => unknown): Promise<void> {
    try {
      await this.runPhase(plugin, phase, run);
    } catch (error) {
      this.host.report(error as YardmasterError);
    }
  }

  private async runPhase<T>(plugin: LoadedPlugin, phase: Phase, run: () => T): Promise<Awaited<T>> {
    const { name, blueprint } = plugin;
    const startMs = this.clock.nowMs();
    const seconds = PHASE_TIMEOUT_MS / 1000;
    const shown = `plugin "${name}" (${blueprint.source})`;
    try {
      const running = Promise.resolve().then(run) as Promise<Awaited<T>>;
      return await withTimeout(this.clock, running, PHASE_TIMEOUT_MS, () => {
        return new YardmasterError(
          'ERR_PLUGIN_SETUP',
          `${shown} did not finish ${phase} within ${seconds} s; it probably awaits a promise that never settles`,
          { plugin: name, phase, timeoutMs: PHASE_TIMEOUT_MS },
        );
      });
    } catch (cause) {
      if (YardmasterError.is(cause) && cause.data['phase'] === phase) throw cause;
      if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause; // It says all that is needed.
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `${shown} failed in ${phase}: ${cause instanceof Error ? cause.message : String(cause)}`,
        { plugin: name, phase },
        { cause },
      );
    } finally {
      plugin.phasesMs.set(phase, this.clock.nowMs() - startMs);
    }
  }
}
