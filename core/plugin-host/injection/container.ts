import { YardmasterError } from '../../api/errors.ts';
import type { Injectable, Provider, Services, Token } from '../../api/token.ts';
import { show } from '../../shared/words.ts';
import { isPromise } from '../../util/is-promise.ts';
import { declaredTokens, inject, injectable, libraryContainer } from './di.ts';

/**
 * The collaborators of one host. Each is made when it is first needed, once, and keeps direct references to
 * the others: nothing is looked up while the host runs.
 */
export class Container implements Services {
  private readonly library = libraryContainer.createChildContainer();
  /** What is being made, each for the one before it. */
  private readonly making: Token<unknown>[] = [];
  /** The latest failure: the library keeps only its message. */
  private failure: YardmasterError | undefined;

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
    if (!isToken(token)) throw noToken('what was asked for', token);
    try {
      return this.library.resolve<T>(token.id);
    } catch (cause) {
      throw this.failureOf(token, cause);
    }
  }

  private add(provider: Provider): void {
    const { token } = provider;
    if ('useClass' in provider) {
      const { useClass } = provider;
      prepare(token, useClass);
      this.addMade(token, () => this.library.resolve(useClass as new () => object));
    } else if ('useFactory' in provider) {
      const { useFactory } = provider;
      if (typeof useFactory !== 'function') {
        throw providerError(token, 'has a useFactory that is no function');
      }
      this.addMade(token, () => checkedService(token, useFactory(this), 'useFactory returned'));
    } else if ('useValue' in provider) {
      this.library.register(token.id, { useValue: provider.useValue });
    } else {
      throw providerError(token, 'needs useClass, useFactory or useValue');
    }
  }

  /** Registers what is made when it is first needed. */
  private addMade(token: Token<unknown>, make: () => unknown): void {
    let made: { readonly service: unknown } | undefined;
    this.library.register(token.id, {
      useFactory: () => (made ??= { service: this.make(token, make) }).service,
    });
  }

  private make(token: Token<unknown>, make: () => unknown): unknown {
    const { making } = this;
    const first = making.findIndex(({ id }) => id === token.id);
    if (first >= 0) {
      const circle = [...making.slice(first), token].map(nameOf).join(' → ');
      this.failure = providerError(
        token,
        `needs itself to be made: ${circle}; have one of them ask for another one when it is used, and not when it is made`,
      );
      throw this.failure;
    }
    making.push(token);
    try {
      return make();
    } catch (cause) {
      throw this.failureOf(token, cause);
    } finally {
      making.pop();
    }
  }

  /** The failure itself, and not one that quotes it. */
  private failureOf(token: Token<unknown>, cause: unknown): YardmasterError {
    const message = cause instanceof Error ? cause.message : String(cause);
    const { failure } = this;
    if (YardmasterError.is(cause)) this.failure = cause;
    else if (failure === undefined || !message.includes(failure.message)) {
      this.failure = providerError(token, `cannot be made: ${message}`, cause);
    }
    return this.failure as YardmasterError;
  }
}

/** Whether a value names a service. */
export function isToken(value: unknown): value is Token<unknown> {
  return typeof (value as { id?: unknown } | null | undefined)?.id === 'symbol';
}

/**
 * Refuses a service that cannot be used as one.
 * @param how - where it comes from: `useFactory returned`
 * @throws YardmasterError `ERR_PROVIDER`
 */
export function checkedService<T>(token: Token<unknown>, service: T, how: string): T {
  if (service === undefined || service === null) {
    throw providerError(token, `cannot be used: ${how} nothing`);
  }
  if (!isPromise(service)) return service;
  throw providerError(
    token,
    `cannot be used: ${how} a promise, and collaborators are made at once; await it before, and give what it resolves to as useValue`,
  );
}

/** Name of a token in messages. */
export function nameOf(token: Token<unknown> | undefined): string {
  return (token?.id.description ?? '').replace(/^yardmaster:/, '');
}

/** For something that stands where a token is wanted. */
export function noToken(what: string, got: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PROVIDER',
    `${what} has no token, but ${show(got)}; is the import of the token right?`,
  );
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
      if (!isToken(dependency))
        throw noToken(`parameter ${index + 1} of ${Class.name}`, dependency);
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
