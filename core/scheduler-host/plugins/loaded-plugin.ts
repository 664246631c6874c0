import { YardmasterError } from '../../api/errors.ts';
import type { PolicySlots, SlotName } from '../../api/policies.ts';
import type { Token } from '../../api/plugin.ts';
import type { Connection } from '../../api/transport.ts';
import { PendingAnswers } from '../../host/pending-answers.ts';
import { HostedPlugin, type PluginSurroundings } from '../../plugin-host/hosted-plugin.ts';
import { nameOf } from '../../plugin-host/injection/container.ts';
import type { Blueprint } from '../../plugin-host/loading/plugin-blueprint.ts';
import { checkSlot, type PolicySlotTable, shieldedPolicy } from '../../plugin-host/policy-slots.ts';
import type { PluginCommand } from './plugin-command.ts';
import type { PluginServices } from './plugin-services.ts';

/** Where the plugins of a scheduler register what they offer. */
export interface Registers extends PluginSurroundings {
  readonly slots: PolicySlotTable;
  readonly services: PluginServices;
}

/** One plugin of a scheduler with all that it has registered, so that all of it can be taken back. */
export class LoadedPlugin extends HostedPlugin {
  readonly commands = new Map<string, PluginCommand>();
  /** Of its commands. */
  readonly answers = new PendingAnswers();
  /** Policies that it offers; they fill their slots once the plugin is attached. */
  readonly policies = new Map<SlotName, PolicySlots[SlotName]>();
  /** Connections to its own scheduler that it has opened. */
  readonly connections = new Set<Connection>();
  private readonly provided: (() => void)[] = [];
  /** Ids of the services that it provides. */
  private readonly services = new Set<symbol>();

  constructor(
    blueprint: Blueprint,
    private readonly registers: Registers,
  ) {
    super(blueprint, registers);
  }

  /**
   * Gives a service to others, from the moment at which the plugin is attached.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when it provides the service already
   */
  provide<T>(service: Token<T>, value: T): void {
    if (this.services.has(service.id)) {
      const name = nameOf(service);
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `${this.owner} provides the service "${name}" twice; provide it once`,
        { plugin: this.name, service: name },
      );
    }
    this.services.add(service.id);
    const provide = (): void => this.registers.services.provide(service, value, this);
    this.provided.push(provide);
    if (this.isAttached) provide();
  }

  /** Fills a slot, from the moment at which the plugin is attached. */
  providePolicy<Slot extends SlotName>(slot: Slot, given: PolicySlots[Slot]): void {
    checkSlot(slot, this.owner);
    const isShielded = !this.blueprint.isTrusted && given instanceof Object;
    const policy = isShielded ? shieldedPolicy(slot, given) : given;
    if (this.isAttached)
      this.registers.slots.provide(slot, { name: this.name, policy }, this.owner);
    this.policies.set(slot, policy);
  }

  override attach(): void {
    for (const [slot, policy] of this.policies) {
      this.registers.slots.provide(slot, { name: this.name, policy }, this.owner);
    }
    super.attach();
    for (const provide of this.provided) provide();
  }

  override withdraw(): void {
    super.withdraw();
    this.registers.slots.withdraw(this.owner);
  }

  override leave(): void {
    this.stop();
  }

  override stop(): void {
    this.registers.services.withdraw(this);
    this.commands.clear();
    super.stop();
    for (const connection of this.connections) connection.abort(this.closedError());
    this.connections.clear();
  }

  /** Calls of its commands that it has not answered fail. */
  override ended(): void {
    if (this.answers.size > 0) {
      this.answers.failAll(
        this.closedError('was removed, or its scheduler closed, before it answered the command'),
      );
    }
  }
}
