import { YardmasterError } from '../api/errors.ts';
import type { HookName } from '../api/hooks.ts';
import { type Token } from '../api/plugin.ts';
import type { SlotName } from '../api/policies.ts';
import type { PolicyRoles, RoleName, Rule } from '../api/rules.ts';
import type { Connection } from '../api/transport.ts';
import { PendingAnswers } from '../host/answers.ts';
import { checkPolicy } from '../plugin-host/contracts.ts';
import { collaborator, nameOf } from '../plugin-host/injection.ts';
import type { Blueprint } from '../plugin-host/load-extensions.ts';
import {
  HostedPlugin,
  type PluginInfo,
  type PluginSurroundings,
} from '../plugin-host/plugin-host.ts';
import { checkSlot, PolicySlotTable, shieldedPolicy } from '../plugin-host/policy-slots.ts';
import type { PluginCommand } from './commands.ts';

/** An owner that provides services for a while. */
interface ServiceOwner {
  readonly name: string;
}

/** Services that plugins give to each other, for as long as they are there. */
@collaborator
export class PluginServices {
  private readonly provided = new Map<
    symbol,
    { readonly owner: ServiceOwner; readonly service: unknown }
  >();

  /**
   * Provides a service until its owner is removed.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when a plugin provides it already
   */
  provide<T>(token: Token<T>, service: T, owner: ServiceOwner): void {
    const other = this.provided.get(token.id)?.owner;
    if (other !== undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `plugin "${owner.name}" cannot provide the service "${nameOf(token)}": plugin "${other.name}" does already; remove one of both`,
        { plugin: owner.name, other: other.name, service: `the service "${nameOf(token)}"` },
      );
    }
    this.provided.set(token.id, { owner, service });
  }

  /** Takes back all that an owner provides. */
  withdraw(owner: ServiceOwner): void {
    for (const [id, entry] of this.provided) {
      if (entry.owner === owner) this.provided.delete(id);
    }
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when no plugin provides it */
  get<T>(token: Token<T>): T {
    const found = this.provided.get(token.id);
    if (found !== undefined) return found.service as T;
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `no plugin provides the service "${nameOf(token)}"; list the plugin that does before the one that asks`,
      { service: `the service "${nameOf(token)}"` },
    );
  }
}

/** The plugins of a scheduler that are set up, in order. {@link PluginHost} adds and removes them. */
@collaborator
export class PluginTable {
  readonly byName = new Map<string, LoadedPlugin>();

  constructor(private readonly slots: PolicySlotTable) {}

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
    const hooks = [...observer.hooks.keys()];
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

interface Registers extends PluginSurroundings {
  readonly slots: PolicySlotTable;
  readonly services: PluginServices;
}

/** One plugin of a scheduler with all that it has registered, so that all of it can be taken back. */
export class LoadedPlugin extends HostedPlugin {
  readonly commands = new Map<string, PluginCommand>();
  /** Of its commands. */
  readonly answers = new PendingAnswers();
  /** Policies that it offers; they fill their slots once the plugin is attached. */
  readonly policies = new Map<RoleName, PolicyRoles[RoleName]>();
  /** Connections to its own scheduler that it has opened. */
  readonly connections = new Set<Connection>();
  private readonly provided: (() => void)[] = [];

  constructor(
    blueprint: Blueprint,
    private readonly registers: Registers,
  ) {
    super(blueprint, registers);
  }

  /**
   * Gives a service to others, from the moment at which the plugin is attached.
   */
  provide<T>(service: Token<T>, value: T): void {
    const provide = (): void => this.registers.services.provide(service, value, this);
    this.provided.push(provide);
    if (this.isAttached) provide();
  }

  /** Fills a slot or adds a rule, from the moment at which the plugin is attached. */
  providePolicy<Role extends RoleName>(role: Role, given: PolicyRoles[Role]): void {
    if (role !== 'rules') checkSlot(role, this.owner);
    if (this.isAttached) this.fill(role, given);
    this.policies.set(role, given);
  }

  private fill(role: RoleName, given: PolicyRoles[RoleName]): void {
    const { name, owner, blueprint } = this;
    const { slots, hooks } = this.registers;
    checkPolicy(role, given, `${name} from ${owner}`);
    const policy = blueprint.isTrusted ? given : shieldedPolicy(role, given, name, hooks);
    if (role === 'rules') slots.provideRules([{ name, policy: policy as Rule, weight: 1 }], owner);
    else slots.provide(role, { name, policy: policy as never }, owner);
  }

  override attach(): void {
    for (const [slot, policy] of this.policies) this.fill(slot, policy);
    super.attach();
    for (const provide of this.provided) provide();
  }

  override withdraw(): void {
    super.withdraw();
    this.registers.slots.withdraw(this.owner);
    this.registers.services.withdraw(this);
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
