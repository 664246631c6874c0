import { inspect } from 'node:util';
import { ACTIVE_MEMORY_MANAGER, type ActiveMemoryManager } from '../api/amm-manager.ts';
import type { YardmasterError } from '../api/errors.ts';
import { token, type Token } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { Transport } from '../api/transport.ts';
import type { Config } from '../config/types.ts';
import type { TransportTable } from '../host/transport-table.ts';
import type { TransitionRecord } from '../kernel/insight/story.ts';
import type { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import { EVENT_BUS, type EventBus } from '../plugin-host/event-bus.ts';
import { EXTENSIONS, type Extensions } from './plugins/extensions.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CONFIG } from '../plugin-host/injection/tokens.ts';
import type { AddPluginOptions, PluginInfo } from '../plugin-host/plugin-info.ts';
import { PLUGIN_SERVICES, type PluginServices } from './plugins/plugin-services.ts';
import { PLUGINS, type PluginTable } from './plugins/plugin-table.ts';
import type { ClusterState } from '../state/cluster.ts';
import { COMMANDS, type Commands } from './commands/commands.ts';
import { POLICY_ADMIN, type PolicyAdmin } from './commands/policy-admin.ts';
import { type Loading, LOADING } from './life/loading.ts';
import { SHUTDOWN, type Shutdown } from './life/shutdown.ts';
import type { Scheduler } from './scheduler.ts';
import { type Listeners, LISTENERS } from './sessions/listeners.ts';
import { checkStimulus } from './sessions/message-validation.ts';
import { type IncomingStimulus, type Stimuli, STIMULI } from './stimulus-queue.ts';
import { KERNEL, TRANSPORTS } from './tokens.ts';

export const SCHEDULER: Token<RunningScheduler> = token('scheduler');

/** The scheduler as programs see it. */
export class RunningScheduler implements Scheduler {
  constructor(
    @inject(CONFIG) readonly config: Config,
    @inject(KERNEL) readonly kernel: SchedulerKernel,
    @inject(EVENT_BUS) readonly events: EventBus,
    @inject(POLICY_ADMIN) readonly policies: PolicyAdmin,
    @inject(PLUGINS) private readonly pluginTable: PluginTable,
    @inject(PLUGIN_SERVICES) private readonly services: PluginServices,
    @inject(EXTENSIONS) private readonly extensions: Extensions,
    @inject(TRANSPORTS) private readonly transports: TransportTable,
    @inject(LISTENERS) private readonly listeners: Listeners,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    @inject(COMMANDS) private readonly commands: Commands,
    @inject(LOADING) private readonly loading: Loading,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
  ) {}

  [inspect.custom](): string {
    const { workersByRank, tasks, clients } = this.cluster;
    const lines = Object.entries(this.policies.current).map(([slot, name]) => `  ${slot}: ${name}`);
    const counts = `${workersByRank.length} workers, ${clients.size} clients, ${tasks.size} tasks`;
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
    return this.listeners.listen(address);
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
    checkStimulus(stimulus);
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
