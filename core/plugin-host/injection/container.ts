import { YardmasterError } from '../../api/errors.ts';
import type { Token } from '../../api/plugin.ts';
import { type DependencyContainer, libraryContainer } from './di.ts';

/** A class whose constructor names the token of each parameter. */
export type Injectable<T> = new (...dependencies: never[]) => T;

/** Who provides a service for a while. One that replaces another has the same name. */
export interface Lender {
  readonly name: string;
}

/**
 * Services by token, with scopes: a child sees what its parents provide. One for each scheduler, and
 * a child for each of its plugins. Nothing is asked of it after boot but at run-time changes.
 */
export class Container {
  private readonly children: Container[] = [];
  private readonly provided: symbol[] = [];
  /** Who provides what at run time; the library can replace a registration but not take it back. */
  private readonly lent = new Map<symbol, { readonly owner: Lender; readonly service: unknown }>();

  private constructor(
    private readonly library: DependencyContainer,
    private readonly parent: Container | undefined,
  ) {}

  /** A separate container that shares nothing with others of the process. */
  static root(): Container {
    return new Container(libraryContainer.createChildContainer(), undefined);
  }

  child(): Container {
    const child = new Container(this.library.createChildContainer(), this);
    this.children.push(child);
    return child;
  }

  provide<T>(token: Token<T>, service: T): void {
    this.provided.push(token.id);
    this.library.register(token.id, { useValue: service });
  }

  /** Made when it is first asked for, once. */
  provideClass<T>(token: Token<T>, constructor: Injectable<T>): void {
    this.provided.push(token.id);
    this.library.registerSingleton(token.id, constructor as unknown as new () => object);
  }

  /**
   * Provides a service until its owner goes.
   * @throws YardmasterError `ERR_PLUGIN_SETUP` when another plugin provides it
   */
  lend<T>(token: Token<T>, service: T, owner: Lender): void {
    const other = this.lent.get(token.id)?.owner;
    if (other !== undefined && other.name !== owner.name) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `plugin "${owner.name}" cannot provide ${nameOf(token)}: plugin "${other.name}" does already; remove one of both`,
        { plugin: owner.name, other: other.name, service: nameOf(token) },
      );
    }
    this.lent.set(token.id, { owner, service });
  }

  /** Takes back all that an owner lent. */
  withdraw(owner: Lender): void {
    for (const [id, entry] of this.lent) {
      if (entry.owner === owner) this.lent.delete(id);
    }
  }

  /** @throws YardmasterError `ERR_PLUGIN_SETUP` when no plugin provides it */
  get<T>(token: Token<T>): T {
    const lent = this.findLent(token.id);
    if (lent !== undefined) return lent.service as T;
    if (!this.isProvided(token.id)) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `no plugin provides ${nameOf(token)}; list the plugin that does before the one that asks`,
        { service: nameOf(token) },
      );
    }
    return this.library.resolve<T>(token.id);
  }

  /** Disposes the children first, the youngest first. */
  async dispose(): Promise<void> {
    for (const child of this.children.toReversed()) await child.dispose();
    this.children.length = 0;
    this.lent.clear();
    this.parent?.forget(this);
    await this.library.dispose();
  }

  private forget(child: Container): void {
    const index = this.children.indexOf(child);
    if (index >= 0) this.children.splice(index, 1);
  }

  private findLent(id: symbol): { service: unknown } | undefined {
    return this.lent.get(id) ?? this.parent?.findLent(id);
  }

  private isProvided(id: symbol): boolean {
    return this.provided.includes(id) || this.parent?.isProvided(id) === true;
  }
}

function nameOf({ id }: Token<unknown>): string {
  return `the service "${(id.description ?? '').replace(/^yardmaster:/, '')}"`;
}
