import type { Clock } from '../api/clock.ts';
import type { YardmasterError } from '../api/errors.ts';
import { type Builtins, type Logger } from '../api/plugin.ts';
import type { KernelSlotName, KernelSlots, PolicySlots, SlotName } from '../api/policies.ts';
import type { LoadedConfig } from '../config/check.ts';
import type { Named } from '../kernel/ports.ts';
import { EventBus, HookRegistry } from '../plugin-host/hooks.ts';
import { AT_RUN_TIME, ProblemList } from '../plugin-host/extension-options.ts';
import { collaborator, inject, refuseProviders } from '../plugin-host/injection.ts';
import { BUILTINS, CLOCK, LOADED_CONFIG, LOGGER } from '../host/tokens.ts';
import {
  type Blueprint,
  blueprintOf,
  CONFIGURATION,
  loadBlueprints,
  loadOtherPolicies,
  loadPolicies,
  loadPolicy,
} from '../plugin-host/load-extensions.ts';
import { type AddPluginOptions, PluginHost } from '../plugin-host/plugin-host.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { checkSlot, PolicySlotTable } from '../plugin-host/policy-slots.ts';
import { checkCall, FIELDS, FLAG, oneOf, type Rules } from '../shared/schema.ts';
import { ErrorReports } from './error-reports.ts';
import { PortsReplacement } from './kernel-ports.ts';
import { PluginContexts } from './plugin-contexts.ts';
import { LoadedPlugin, PluginServices, PluginTable } from './plugin-table.ts';
import { Shutdown } from './shutdown.ts';

const ADD_PLUGIN_RULES: Rules<AddPluginOptions> = {
  idempotent: FLAG,
  options: FIELDS,
  onError: oneOf('log', 'disable', 'crash'),
};

type Options = Readonly<Record<string, unknown>>;

/** The policies and plugins that a configuration names, loaded and checked; none is set up here. */
@collaborator
export class ConfiguredExtensions {
  /** Policies that are to be compared with those in charge. */
  shadows: ReadonlyMap<KernelSlotName, Named<KernelSlots[KernelSlotName]>> = new Map();
  blueprints: readonly Blueprint[] = [];

  constructor(
    @inject(LOADED_CONFIG) private readonly loaded: LoadedConfig,
    @inject(BUILTINS) private readonly builtins: Builtins,
    private readonly resolver: PluginResolver,
    private readonly slots: PolicySlotTable,
    private readonly plugins: PluginTable,
  ) {}

  /** @throws YardmasterError with every problem */
  async load(): Promise<void> {
    const { resolver, loaded, slots } = this;
    const problems = new ProblemList(loaded.origin);
    await problems.attempt(undefined, () => loadPolicies(slots, resolver, loaded));
    await problems.attempt(undefined, async () => {
      this.shadows = await loadOtherPolicies(resolver, loaded);
    });
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

/** Starts the configured plugins of a scheduler, and changes plugins and policies while it runs. */
@collaborator
export class Extensions {
  /** Plugins of the configuration that were set up. */
  private readonly configured = new WeakSet<Blueprint>();
  private readonly host: PluginHost<LoadedPlugin>;

  constructor(
    private readonly initial: ConfiguredExtensions,
    private readonly plugins: PluginTable,
    contexts: PluginContexts,
    services: PluginServices,
    private readonly slots: PolicySlotTable,
    hooks: HookRegistry,
    private readonly ports: PortsReplacement,
    private readonly resolver: PluginResolver,
    private readonly bus: EventBus,
    private readonly errors: ErrorReports,
    shutdown: Shutdown,
    @inject(CLOCK) clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(LOADED_CONFIG) loaded: LoadedConfig,
  ) {
    const report = (error: YardmasterError): void => this.report(error);
    hooks.onSlow = (message) => log.warn({}, message);
    hooks.slowMs = loaded.config.scheduler.slowHook;
    bus.onFailure = report;
    const registers = { clock, log, hooks, slots, services, report };
    this.host = new PluginHost<LoadedPlugin>({
      clock,
      hooks,
      plugins: plugins.byName,
      make: (blueprint) => new LoadedPlugin(blueprint, registers),
      contextOf: (plugin) => contexts.contextOf(plugin),
      changed: () => ports.request(),
      report,
      crashed: (plugin, error) => {
        shutdown.stopBecause(`plugin "${plugin}" failed and its onError is crash`, error);
      },
      checkOpen: () => shutdown.checkOpen(),
    });
  }

  /** Sets up and starts what was loaded. */
  async start(): Promise<void> {
    for (const blueprint of this.initial.blueprints) {
      this.configured.add(blueprint);
      await this.host.add(blueprint);
    }
    for (const plugin of this.plugins.all) await this.host.start(plugin);
    this.initial.blueprints = []; // The plugin table has them from now on.
  }

  /** The plugin that fills a slot, if one does, and whether the configuration lists it. */
  pluginIn(slot: SlotName): { readonly name: string; readonly isConfigured: boolean } | undefined {
    const blueprint = this.plugins.filling(slot)?.blueprint;
    return blueprint && { name: blueprint.name, isConfigured: this.configured.has(blueprint) };
  }

  /** True while plugins come or go. */
  get isChanging(): boolean {
    return this.host.isChanging;
  }

  async addPlugin(plugin: string | object, request: AddPluginOptions): Promise<string> {
    checkCall('addPlugin', request, ADD_PLUGIN_RULES);
    const { idempotent = false, options, onError = 'log' } = request;
    return this.host.change(async () => {
      const resolved = await this.resolver.resolve(plugin, 'plugin');
      const blueprint = blueprintOf(resolved, { onError, place: AT_RUN_TIME, options });
      const { name } = blueprint;
      if (idempotent && this.plugins.get(name) !== undefined) return name;
      refuseProviders(blueprint, 'scheduler');
      await blueprint.load(this.resolver);
      await this.host.addStarted(blueprint);
      this.bus.emit('plugin-added', name);
      return name;
    });
  }

  removePlugin(name: string): Promise<void> {
    return this.host.change(async () => {
      await this.host.remove(this.plugins.removable(name));
      this.bus.emit('plugin-removed', name);
    });
  }

  async replacePolicy(slot: SlotName, policy: string | object, options?: Options): Promise<void> {
    checkSlot(slot);
    await this.host.change(async () => {
      const named = await this.load(slot, policy, options);
      this.slots.provide(slot, named, CONFIGURATION);
      this.ports.request();
    });
  }

  /** Makes a policy that fills no slot. */
  loadPolicy<Slot extends SlotName>(
    slot: Slot,
    policy: string | object,
    options?: Options,
  ): Promise<Named<PolicySlots[Slot]>> {
    return this.host.change(() => this.load(slot, policy, options));
  }

  /** First step when the scheduler closes. Waits for changes that are under way. */
  async beforeClose(): Promise<void> {
    await this.host.settled();
    await this.host.beforeClose();
  }

  /** Closes all plugins, the newest first. Errors are reported. */
  close(): Promise<void> {
    return this.host.closeAll();
  }

  private load<Slot extends SlotName>(
    slot: Slot,
    policy: string | object,
    options: Options | undefined,
  ): Promise<Named<PolicySlots[Slot]>> {
    const entry = { use: policy, options };
    return loadPolicy(this.resolver, slot, entry, AT_RUN_TIME);
  }

  private report(error: YardmasterError): void {
    // What observes errors and throws would be called with its own failure again and again.
    const { hook } = error.data;
    if (hook === 'errorReported' || hook === 'event:error')
      this.log.error({ err: error }, error.message);
    else this.errors.report(error);
  }
}
