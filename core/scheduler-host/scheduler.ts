import { ACTIVE_MEMORY_MANAGER, type ActiveMemoryManager } from '../api/amm-manager.ts';
import type { Clock } from '../api/clock.ts';
import type { YardmasterError } from '../api/errors.ts';
import type { EventSource } from '../api/hooks.ts';
import { type Builtins, type Logger, type NewStimulus } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { Provider } from '../api/token.ts';
import type { Transport, TransportInput } from '../api/transport.ts';
import type { ClusterView } from '../api/views.ts';
import type { ConfigLayers } from '../config/check.ts';
import type { ConfigReader } from '../config/load.ts';
import type { Config, ConfigInput } from '../config/types.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import type { TransitionRecord } from '../api/insight.ts';
import { EventBus } from '../plugin-host/hooks.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CONFIG, LOGGER } from '../host/tokens.ts';
import type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-host.ts';
import { TransportTable } from './transport-table.ts';
import type { ClusterState } from '../state/cluster.ts';
import { countOf } from '../util/values.ts';
import { Commands } from './commands.ts';
import { Extensions } from './extensions.ts';
import { PluginServices, PluginTable } from './plugin-table.ts';
import { PolicyAdmin, type SchedulerPolicies } from './policy-admin.ts';
import { Loading } from './scheduler-life.ts';
import { Shutdown } from './shutdown.ts';
import { type IncomingStimulus, INGRESS, type Ingress, type Stimuli, STIMULI } from './tokens.ts';

/** The options of a scheduler. */
export interface CreateSchedulerOptions {
  /** The configuration, or the path of its file. Default: all defaults. */
  readonly config?: ConfigInput | string;
  /**
   * The configuration file. With `config` as an object it only says what relative `use` paths are
   * relative to.
   */
  readonly configFile?: string;
  /** Configurations below and above it, such as those of flags. */
  readonly layers?: ConfigLayers;
  /** Reads configurations, with the sections of what is built in. */
  readonly configuration: ConfigReader;
  /** Short names of what is built in. */
  readonly builtins: Builtins;
  readonly clock: Clock;
  /**
   * Before the configured and the built-in ones; needed for transports that share a hub, such as the
   * in-memory one.
   */
  readonly transports?: readonly TransportInput[];
  /** After the configured one, and before the built-in ones. */
  readonly fallbackTransports?: readonly Transport[];
  /** Default: warnings and errors go to the standard error stream. */
  readonly log?: Logger;
  /**
   * Replaces parts of the scheduler; `tokens` of `yardmaster/plugin` names them.
   * Example: `[{ token: StimulusQueue, useClass: CountingQueue }]`
   */
  readonly provide?: readonly Provider[];
  /** Called once when the scheduler closes because of a bug or of a plugin with `onError: crash`. */
  readonly onCrash?: (error: YardmasterError) => void;
}

/** A running scheduler: the kernel with its plugins, connections and timers. */
export interface Scheduler {
  readonly config: Config;
  readonly cluster: ClusterView;
  readonly events: EventSource;
  /** The log that it was given; what passes here is also among the lines of the command `logs`, and of the dashboard. */
  readonly log: Logger;
  /** For tests and diagnostics: read only. */
  readonly kernel: SchedulerKernel;
  readonly plugins: readonly PluginInfo[];
  /**
   * The transport that `scheduler.transport` of the configuration names; undefined when it names none. Peers within
   * this process may have to use the same instance.
   */
  readonly transport: Transport | undefined;
  /**
   * The Active Memory Manager: starts and stops, runs a round, adds and removes policies.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when the plugin `amm` was removed
   */
  readonly amm: ActiveMemoryManager;
  /** The policies in charge, their shadows, and their explanations. */
  readonly policies: SchedulerPolicies;
  /** The error with which it crashed, if it did. */
  readonly crash: YardmasterError | undefined;
  /** Plugins with their sources, phases, hooks and slots, as a tree for people. */
  bootReport(): string;
  /**
   * Accepts connections. May be called for several addresses.
   * @param address - default: `scheduler.address` of the configuration
   * @returns the address with the real port
   * @throws YardmasterError `ERR_CONNECT`, `ERR_CLOSED`
   */
  listen(address?: string): Promise<string>;
  /**
   * Adds a plugin while running: a definition, class, instance, or what a config file could name.
   * @returns its name
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_CONFIG`, `ERR_SLOT`
   */
  addPlugin(plugin: string | object, options?: AddPluginOptions): Promise<string>;
  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when no plugin has this name, or it is required */
  removePlugin(name: string): Promise<void>;
  /**
   * Puts another policy in charge of a slot, between two stimuli.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  replacePolicy(
    slot: SlotName,
    policy: string | object,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /**
   * Handles a stimulus now, or after the present one. Without an id it gets one.
   * @throws YardmasterError `ERR_PROTOCOL` when it is not of the form of its `op`; nothing happens then
   */
  enqueue(stimulus: NewStimulus & { readonly stimulusId?: string }): void;
  /** The newest transitions of these keys, or because of these stimuli; the oldest comes first. */
  story(...keysOrStimuli: string[]): TransitionRecord[];
  /** A built-in command or one of a plugin (`amm.runOnce`), as clients call it. */
  command(name: string, parameters?: unknown): unknown;
  /** Closes plugins, connections and timers. Resolves when all is over; never rejects. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The name of the method by which Node shows an object. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** The scheduler as programs see it. */
@collaborator
export class RunningScheduler implements Scheduler {
  constructor(
    @inject(CONFIG) readonly config: Config,
    @inject(LOGGER) readonly log: Logger,
    readonly kernel: SchedulerKernel,
    readonly events: EventBus,
    readonly policies: PolicyAdmin,
    private readonly pluginTable: PluginTable,
    private readonly services: PluginServices,
    private readonly extensions: Extensions,
    private readonly transports: TransportTable,
    @inject(INGRESS) private readonly ingress: Ingress,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly commands: Commands,
    private readonly loading: Loading,
    private readonly shutdown: Shutdown,
  ) {}

  [INSPECT](): string {
    const { workersByRank, tasks, clients } = this.cluster;
    const lines = Object.entries(this.policies.current).map(([slot, name]) => `  ${slot}: ${name}`);
    const counts = [
      countOf(workersByRank.length, 'worker'),
      countOf(clients.size, 'client'),
      countOf(tasks.size, 'task'),
    ].join(', ');
    return [`<Scheduler ${counts}>`, ...lines].join('\n');
  }

  get cluster(): ClusterState {
    return this.kernel.cluster;
  }

  get plugins(): readonly PluginInfo[] {
    return this.pluginTable.infos;
  }

  get transport(): Transport | undefined {
    return this.transports.configured;
  }

  get amm(): ActiveMemoryManager {
    return this.services.get(ACTIVE_MEMORY_MANAGER);
  }

  get crash(): YardmasterError | undefined {
    return this.shutdown.crash;
  }

  bootReport(): string {
    return this.loading.report();
  }

  listen(address: string = this.config.scheduler.address): Promise<string> {
    return this.ingress.listen(address);
  }

  addPlugin(plugin: string | object, options: AddPluginOptions = {}): Promise<string> {
    return this.extensions.addPlugin(plugin, options);
  }

  removePlugin(name: string): Promise<void> {
    return this.extensions.removePlugin(name);
  }

  replacePolicy(
    slot: SlotName,
    policy: string | object,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.extensions.replacePolicy(slot, policy, options);
  }

  enqueue(stimulus: IncomingStimulus): void {
    this.ingress.check(stimulus);
    this.stimuli.accept(stimulus);
  }

  story(...keysOrStimuli: string[]): TransitionRecord[] {
    return this.kernel.story(...keysOrStimuli);
  }

  command(name: string, parameters?: unknown): unknown {
    return this.commands.run(name, parameters, {});
  }

  close(): Promise<void> {
    return this.shutdown.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
