import { type Logger, token, type Token } from '../api/plugin.ts';
import type { PolicySlots, SlotName } from '../api/policies.ts';
import type { Named } from '../kernel/ports.ts';
import { CONFIGURED_EXTENSIONS, type ConfiguredExtensions } from './configured-extensions.ts';
import { EVENT_BUS, type EventBus } from './event-bus.ts';
import { type FailureReport, type HookRegistry, HOOKS, type Observer } from './hook-table.ts';
import { providerError } from './injection/container.ts';
import { inject } from './injection/di.ts';
import { LOGGER } from './injection/tokens.ts';
import { PLUGIN_HOST, type PluginHost } from './loaded-plugin.ts';
import { AT_RUN_TIME } from './loading/extension-options.ts';
import { CONFIGURATION } from './loading/load-extensions.ts';
import { type Blueprint, blueprintOf } from './loading/plugin-blueprint.ts';
import { type PluginResolver, RESOLVER } from './loading/plugin-resolver.ts';
import { loadPolicy } from './loading/policy-loader.ts';
import type { AddPluginOptions } from './plugin-info.ts';
import { LIFECYCLE, type PluginLifecycle } from './plugin-lifecycle.ts';
import { PLUGINS, type PluginTable } from './plugin-table.ts';
import { type PolicySlotTable, SLOTS } from './policy-slots.ts';

export const EXTENSIONS: Token<Extensions> = token('extensions');

type Options = Readonly<Record<string, unknown>>;

/** Starts the configured plugins of a scheduler, and changes plugins and policies while it runs. */
export class Extensions {
  /** Plugins of the configuration that were set up. */
  private readonly configured = new WeakSet<Blueprint>();
  /** Changes happen one after the other. */
  private changes: Promise<unknown> = Promise.resolve();

  constructor(
    @inject(CONFIGURED_EXTENSIONS) private readonly initial: ConfiguredExtensions,
    @inject(LIFECYCLE) private readonly lifecycle: PluginLifecycle,
    @inject(PLUGINS) private readonly plugins: PluginTable,
    @inject(SLOTS) private readonly slots: PolicySlotTable,
    @inject(HOOKS) hooks: HookRegistry,
    @inject(RESOLVER) private readonly resolver: PluginResolver,
    @inject(EVENT_BUS) private readonly bus: EventBus,
    @inject(PLUGIN_HOST) private readonly host: PluginHost,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    hooks.onFailure = (observer, failure) => this.hookFailed(observer, failure);
  }

  /** Sets up and starts what was loaded. */
  async start(): Promise<void> {
    for (const blueprint of this.initial.blueprints) {
      this.configured.add(blueprint);
      await this.lifecycle.add(blueprint);
    }
    for (const plugin of this.plugins.all) await this.lifecycle.start(plugin);
    this.initial.blueprints = []; // The plugin table has them from now on.
  }

  /** The plugin that fills a slot, if one does, and whether the configuration lists it. */
  pluginIn(slot: SlotName): { readonly name: string; readonly isConfigured: boolean } | undefined {
    const blueprint = this.plugins.filling(slot)?.blueprint;
    return blueprint && { name: blueprint.name, isConfigured: this.configured.has(blueprint) };
  }

  addPlugin(
    plugin: string | object,
    { idempotent = false, options, onError = 'log' }: AddPluginOptions,
  ): Promise<string> {
    return this.change(async () => {
      const resolved = await this.resolver.resolve(plugin, 'plugin');
      const given = options === undefined ? {} : { options };
      const blueprint = blueprintOf(resolved, { onError, place: AT_RUN_TIME, ...given });
      const { name } = blueprint;
      if (idempotent && this.plugins.get(name) !== undefined) return name;
      refuseProviders(blueprint);
      await blueprint.load(this.resolver);
      await this.lifecycle.start(await this.lifecycle.add(blueprint));
      this.bus.emit('plugin-added', name);
      return name;
    });
  }

  removePlugin(name: string): Promise<void> {
    return this.change(async () => {
      await this.lifecycle.remove(name);
      this.bus.emit('plugin-removed', name);
    });
  }

  async replacePolicy(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    await this.change(async () => {
      const named = await this.load(slot, policy, options);
      this.slots.provide(slot, named, CONFIGURATION);
      this.host.portsChanged();
    });
  }

  /** Makes a policy that fills no slot. */
  loadPolicy<Slot extends SlotName>(
    slot: Slot,
    policy: string | object,
    options?: Options,
  ): Promise<Named<PolicySlots[Slot]>> {
    return this.change(() => this.load(slot, policy, options));
  }

  /** First step when the scheduler closes. Waits for changes that are under way. */
  async beforeClose(): Promise<void> {
    await this.changes;
    await this.lifecycle.beforeClose();
  }

  /** Closes all plugins, the newest first. Errors are reported. */
  close(): Promise<void> {
    return this.lifecycle.closeAll();
  }

  private load<Slot extends SlotName>(
    slot: Slot,
    policy: string | object,
    options: Options | undefined,
  ): Promise<Named<PolicySlots[Slot]>> {
    const entry = { use: policy, ...(options === undefined ? {} : { options }) };
    return loadPolicy(this.resolver, slot, entry, AT_RUN_TIME);
  }

  private change<T>(run: () => Promise<T>): Promise<T> {
    const result = this.changes.then(() => {
      this.host.checkOpen();
      return run();
    });
    this.changes = result.catch(() => undefined); // The caller gets the error.
    return result;
  }

  private hookFailed(observer: Observer, { error, isReported }: FailureReport): void {
    // A listener of the event `error` that throws would be called with its own failure again and again.
    if (isReported && error.data['hook'] === 'event:error') {
      this.log.error({ err: error }, error.message);
    } else if (isReported) this.host.report(error);
    if (observer.onError === 'disable') this.lifecycle.disable(observer.plugin);
    else if (observer.onError === 'crash') {
      this.host.stopBecause(`plugin "${observer.plugin}" failed and its onError is crash`, error);
    }
  }
}

/** The collaborators of a running scheduler hold each other directly: none can be replaced any more. */
function refuseProviders({ name, provide }: Blueprint): void {
  const [first] = provide;
  if (first === undefined) return;
  const what = `cannot be replaced by the plugin "${name}" while the scheduler runs; list the plugin in the configuration`;
  throw providerError(first.token, what);
}
