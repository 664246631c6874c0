import { YardmasterError } from '../api/errors.ts';
import { type PluginInstance, token, type Token } from '../api/plugin.ts';
import { inject } from './injection/di.ts';
import { type HookRegistry, HOOKS } from './hook-table.ts';
import { LoadedPlugin, PLUGIN_SURROUNDINGS, type PluginSurroundings } from './loaded-plugin.ts';
import { type Blueprint, checkRequired } from './loading/plugin-blueprint.ts';
import { PLUGINS, type PluginTable } from './plugin-table.ts';
import { type PolicySlotTable, SLOTS } from './policy-slots.ts';
import { CLOCK } from './injection/tokens.ts';
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
export class PluginLifecycle {
  constructor(
    @inject(PLUGINS) private readonly plugins: PluginTable,
    @inject(PLUGIN_SURROUNDINGS) private readonly around: PluginSurroundings,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(HOOKS) private readonly hooks: HookRegistry,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
  ) {}

  /**
   * Sets a plugin up and attaches its hooks, policies, commands and services. One of the same name is
   * replaced once the new one is ready, and then closed.
   * @throws YardmasterError `ERR_PLUGIN_SETUP`, `ERR_SLOT`
   */
  async add(blueprint: Blueprint): Promise<LoadedPlugin> {
    checkRequired(blueprint, this.plugins.names);
    const plugin = new LoadedPlugin(blueprint, this.around);
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
        `there is no plugin "${name}" to remove; there are ${this.plugins.names.join(', ') || 'none'}`,
        { plugin: name },
      );
    }
    const dependent = this.plugins.all.find(({ blueprint }) => blueprint.requires.includes(name));
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
    this.around.host.portsChanged();
  }

  /** First thing when the scheduler closes. Errors are reported. */
  async beforeClose(): Promise<void> {
    for (const plugin of this.plugins.all.toReversed()) {
      await this.tryPhase(plugin, 'beforeClose', () => plugin.instance.beforeClose?.());
    }
  }

  /** Closes all, the newest first. Errors are reported. */
  async closeAll(): Promise<void> {
    for (const plugin of this.plugins.all.toReversed()) {
      this.plugins.delete(plugin.name);
      this.hooks.remove(plugin.observer);
      await this.end(plugin);
    }
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
      this.around.host.portsChanged();
    }
    replaced?.stop();
    this.plugins.add(plugin);
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
    this.around.host.portsChanged();
  }

  private async end(plugin: LoadedPlugin): Promise<void> {
    plugin.stop();
    await this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
    plugin.failAnswers();
  }

  /** A plugin that did not get as far as being attached. */
  private async discard(plugin: LoadedPlugin): Promise<void> {
    plugin.stop();
    await this.tryPhase(plugin, 'close', () => plugin.instance.close?.());
  }

  private async tryPhase(plugin: LoadedPlugin, phase: Phase, run: () => unknown): Promise<void> {
    try {
      await this.runPhase(plugin, phase, run);
    } catch (error) {
      this.around.host.report(error as YardmasterError);
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
