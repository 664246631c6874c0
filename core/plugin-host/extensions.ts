import type { SchedulerHooks } from '../api/hooks.ts';
import type { Builtins, Logger, Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import {
  type KernelSlotName,
  type KernelSlots,
  type PolicySlots,
  SLOT_NAMES,
  type SlotName,
} from '../api/policies.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { KernelPorts, Named } from '../kernel/ports.ts';
import {
  checkClientPolicies,
  CONFIGURATION,
  loadBlueprints,
  loadPolicies,
  loadShadows,
} from './loading/load-extensions.ts';
import { compilePorts } from './compile-ports.ts';
import { Container } from './injection/container.ts';
import { EVENT_BUS, EventBus } from './event-bus.ts';
import { AT_RUN_TIME } from './loading/extension-options.ts';
import { type FailureReport, HookRegistry, HOOKS, type Observer } from './hook-table.ts';
import { HOST, type PluginHost } from './loaded-plugin.ts';
import { type Blueprint, blueprintOf } from './loading/plugin-blueprint.ts';
import { LIFECYCLE, PluginLifecycle } from './plugin-lifecycle.ts';
import { PluginResolver, RESOLVER } from './loading/plugin-resolver.ts';
import { loadPolicy } from './loading/policy-loader.ts';
import { PolicySlotTable, SLOTS } from './policy-slots.ts';
import { ProblemList } from './loading/problem-list.ts';
import type { AddPluginOptions, PluginInfo } from './plugin-info.ts';
import { BUILTINS, CLOCK, CONFIG_FOLDER, CONTAINER, LOGGER } from './injection/tokens.ts';

/** What extensions are loaded with. */
export interface ExtensionsOptions {
  /** Short names of what is built in. */
  readonly builtins: Builtins;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the owner of the extensions has to do for them. */
export interface ExtensionsHost extends PluginHost {
  /** A plugin whose `onError` is `crash` failed. */
  stopBecause(what: string, cause: unknown): void;
  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void;
}

/**
 * The plugins and policies of one scheduler, and the container that wires them. Everything that the
 * kernel calls leaves through {@link compile}.
 */
export class Extensions {
  readonly bus: EventBus;
  readonly hooks: HookRegistry;
  readonly resolver: PluginResolver;
  readonly lifecycle: PluginLifecycle;
  private readonly container = Container.root();
  private readonly slots: PolicySlotTable;
  /** Policies that the configuration wants compared with those in charge. */
  shadows: ReadonlyMap<KernelSlotName, Named<KernelSlots[KernelSlotName]>> = new Map();
  private blueprints: readonly Blueprint[] = [];
  /** Those of {@link blueprints} that were set up. */
  private readonly configured = new WeakSet<Blueprint>();
  /** Changes happen one after the other. */
  private changes: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly loaded: LoadedConfig,
    private readonly options: ExtensionsOptions,
    private readonly host: ExtensionsHost,
  ) {
    const { container } = this;
    container.provide(CLOCK, options.clock);
    container.provide(LOGGER, options.log);
    container.provide(BUILTINS, options.builtins);
    container.provide(CONFIG_FOLDER, loaded.folder);
    container.provide(CONTAINER, container);
    container.provide(HOST, host);
    container.provideClass(EVENT_BUS, EventBus);
    container.provideClass(HOOKS, HookRegistry);
    container.provideClass(SLOTS, PolicySlotTable);
    container.provideClass(RESOLVER, PluginResolver);
    container.provideClass(LIFECYCLE, PluginLifecycle);
    this.bus = container.get(EVENT_BUS);
    this.hooks = container.get(HOOKS);
    this.slots = container.get(SLOTS);
    this.resolver = container.get(RESOLVER);
    this.lifecycle = container.get(LIFECYCLE);
    this.hooks.onFailure = (observer, failure) => this.hookFailed(observer, failure);
  }

  /** Loads policies and plugins and checks their options; nothing is set up. */
  async load(): Promise<void> {
    const { resolver, loaded, slots } = this;
    const problems = new ProblemList(loaded.origin);
    await problems.attempt(undefined, () => loadPolicies(slots, resolver, loaded));
    await problems.attempt(undefined, async () => {
      this.shadows = await loadShadows(resolver, loaded);
    });
    await problems.attempt(undefined, () => checkClientPolicies(resolver, loaded));
    await problems.attempt(undefined, async () => {
      this.blueprints = await loadBlueprints(resolver, loaded, this.options.builtins);
    });
    problems.throwIfAny();
  }

  /** Sets up and starts what was loaded. The cluster has to be there. */
  async start(): Promise<void> {
    for (const blueprint of this.blueprints) {
      this.configured.add(blueprint);
      await this.lifecycle.add(blueprint);
    }
    for (const plugin of this.lifecycle.all) await this.lifecycle.start(plugin);
    this.blueprints = []; // From now on the lifecycle keeps the list of plugins.
  }

  /** @param own - the host's own observers, which run first */
  compile(own: Partial<SchedulerHooks>): KernelPorts {
    return compilePorts(this.slots, this.hooks, own, ({ error }) => this.host.report(error));
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when no plugin provides it */
  service<T>(token: Token<T>): T {
    return this.container.get(token);
  }

  get infos(): readonly PluginInfo[] {
    return this.lifecycle.all.map(({ blueprint, observer, commands, owner }) => ({
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

  /** The plugin that fills a slot, if one does, and whether the configuration lists it. */
  pluginIn(slot: SlotName): { readonly name: string; readonly isConfigured: boolean } | undefined {
    const found = this.lifecycle.all.find(({ owner }) => this.slots.filledBy(owner).includes(slot));
    if (found === undefined) return undefined;
    const { blueprint } = found;
    return { name: blueprint.name, isConfigured: this.configured.has(blueprint) };
  }

  /** Policies and plugins as a tree for people. */
  report(): string {
    const lines = Object.entries(this.policyNames).map(([slot, name]) => {
      const shadow = this.shadows.get(slot as KernelSlotName);
      return `- ${slot}: ${name}${shadow === undefined ? '' : ` (in its shadow: ${shadow.name})`}`;
    });
    return ['policies', ...lines, 'plugins', this.lifecycle.report(this.blueprints)].join('\n');
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
      if (idempotent && this.lifecycle.get(name) !== undefined) return name;
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

  replacePolicy(
    slot: SlotName,
    policy: string | object,
    options: Readonly<Record<string, unknown>> | undefined,
  ): Promise<void> {
    return this.change(async () => {
      const entry = { use: policy, ...(options === undefined ? {} : { options }) };
      const named = await loadPolicy(this.resolver, slot, entry, AT_RUN_TIME);
      this.slots.provide(slot, named, CONFIGURATION);
      this.host.portsChanged();
    });
  }

  /** Makes a policy that fills no slot. */
  loadPolicy<Slot extends SlotName>(
    slot: Slot,
    policy: string | object,
    options: Readonly<Record<string, unknown>> | undefined,
  ): Promise<Named<PolicySlots[Slot]>> {
    const entry = { use: policy, ...(options === undefined ? {} : { options }) };
    return this.change(() => loadPolicy(this.resolver, slot, entry, AT_RUN_TIME));
  }

  /** Names of what fills the slots. */
  get policyNames(): Readonly<Record<SlotName, string>> {
    const names = SLOT_NAMES.map((slot) => [slot, this.slots.inCharge(slot).name] as const);
    return Object.fromEntries(names) as Record<SlotName, string>;
  }

  /** First thing when the scheduler closes; changes that are under way are finished before. */
  async beforeClose(): Promise<void> {
    await this.changes;
    await this.lifecycle.beforeClose();
  }

  /** Forgets all services and listeners. */
  dispose(): Promise<void> {
    return this.container.dispose();
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
      this.options.log.error({ err: error }, error.message);
    } else if (isReported) this.host.report(error);
    if (observer.onError === 'disable') this.lifecycle.disable(observer.plugin);
    else if (observer.onError === 'crash') {
      this.host.stopBecause(`plugin "${observer.plugin}" failed and its onError is crash`, error);
    }
  }
}
