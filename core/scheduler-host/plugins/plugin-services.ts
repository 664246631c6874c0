import { YardmasterError } from '../../api/errors.ts';
import { token, type Token } from '../../api/plugin.ts';
import { nameOf } from '../../plugin-host/injection/container.ts';

export const PLUGIN_SERVICES: Token<PluginServices> = token('plugin-services');

/** What provides services for a while. One that replaces another has the same name. */
interface ServiceOwner {
  readonly name: string;
}

/** Services that plugins give to each other, for as long as they are there. */
export class PluginServices {
  private readonly provided = new Map<
    symbol,
    { readonly owner: ServiceOwner; readonly service: unknown }
  >();

  /**
   * Provides a service until its owner is removed.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when another plugin provides it
   */
  provide<T>(token: Token<T>, service: T, owner: ServiceOwner): void {
    const other = this.provided.get(token.id)?.owner;
    if (other !== undefined && other.name !== owner.name) {
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
