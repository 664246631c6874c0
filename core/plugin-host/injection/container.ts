import { YardmasterError } from '../../api/errors.ts';
import type { Injectable, Provider, Services, Token } from '../../api/token.ts';
import { show } from '../../shared/words.ts';
import { declaredTokens, inject, injectable, libraryContainer } from './di.ts';

/**
 * The collaborators of one host. Each is made when it is first needed, once, and keeps direct references to
 * the others: nothing is looked up while the host runs.
 */
export class Container implements Services {
  private readonly library = libraryContainer.createChildContainer();

  /**
   * Later providers of a token replace earlier ones.
   * @throws YardmasterError `ERR_PROVIDER`
   */
  register(providers: readonly Provider[]): this {
    for (const provider of providers) this.add(provider);
    return this;
  }

  /** @throws YardmasterError `ERR_PROVIDER` when nothing is registered for the token or what it needs */
  get<T>(token: Token<T>): T {
    try {
      return this.library.resolve<T>(token.id);
    } catch (cause) {
      if (YardmasterError.is(cause)) throw cause;
      const message = cause instanceof Error ? cause.message : String(cause);
      throw providerError(token, `cannot be made: ${message}`, cause);
    }
  }

  private add(provider: Provider): void {
    const { token } = provider;
    if ('useClass' in provider) {
      prepare(token, provider.useClass);
      this.library.registerSingleton(token.id, provider.useClass as new () => object);
    } else if ('useFactory' in provider) {
      if (typeof provider.useFactory !== 'function') {
        throw providerError(token, 'has a useFactory that is no function');
      }
      let made: { readonly service: unknown } | undefined;
      this.library.register(token.id, {
        useFactory: () => (made ??= { service: provider.useFactory(this) }).service,
      });
    } else if ('useValue' in provider) {
      this.library.register(token.id, { useValue: provider.useValue });
    } else {
      throw providerError(token, 'needs useClass, useFactory or useValue');
    }
  }
}

/** Name of a token in messages. */
export function nameOf(token: Token<unknown> | undefined): string {
  return (token?.id.description ?? '').replace(/^yardmaster:/, '');
}

/** @param what - follows the name of the token: `cannot be made: …` */
export function providerError(
  token: Token<unknown> | undefined,
  what: string,
  cause?: unknown,
): YardmasterError {
  const message = `the collaborator "${nameOf(token)}" ${what}`;
  return new YardmasterError('ERR_PROVIDER', message, { token: nameOf(token) }, { cause });
}

/**
 * Lets the library construct a class. Classes of other programs have no decorators: they name their tokens in
 * `static inject`, or inherit the constructor of the class that they extend, which the library does not see.
 */
function prepare(token: Token<unknown>, Class: Injectable<unknown>): void {
  if (
    typeof Class !== 'function' ||
    typeof (Class as { prototype?: unknown }).prototype !== 'object'
  ) {
    throw providerError(token, `cannot be made from ${show(Class)}: useClass takes a class`);
  }
  if (declaredTokens(Class) === undefined) {
    for (const [index, dependency] of inheritedTokens(Class).entries()) {
      inject(dependency)(Class, undefined, index);
    }
  }
  const count = declaredTokens(Class)?.length ?? 0;
  if (Class.length > count) {
    throw providerError(
      token,
      `cannot be made from ${Class.name}: its constructor has ${Class.length} parameters and names tokens for ${count}; ` +
        'list them in "static inject = [TOKEN, …]", or use useFactory',
    );
  }
  injectable()(Class);
}

function inheritedTokens(Class: object): readonly Token<unknown>[] {
  if (Object.hasOwn(Class, 'inject')) {
    return (Class as { readonly inject: readonly Token<unknown>[] }).inject;
  }
  const parent: unknown = Object.getPrototypeOf(Class);
  if (typeof parent !== 'function' || parent === Function.prototype) return [];
  return declaredTokens(parent) ?? inheritedTokens(parent);
}
