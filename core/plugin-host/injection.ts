import 'reflect-metadata';
import { container as libraryContainer, inject as injectId, injectable } from 'tsyringe';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { type Builtins, type Logger, token } from '../api/plugin.ts';
import type { Injectable, Provider, Services, Token } from '../api/token.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/types.ts';
import { hint, show } from '../shared/words.ts';
import { isPromise } from '../util/values.ts';

/**
 * Makes an instance of a class that an extension is, with its options.
 * @param source - whose class it is: `EnsureBroadcast from ./policies.js`
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the constructor throws
 */
export function construct(
  Class: new (options: never) => unknown,
  options: Readonly<Record<string, unknown>>,
  source: string,
): unknown {
  // An arrow function has no prototype; `new` would fail on it with a worse message.
  if (typeof (Class as { prototype?: unknown }).prototype !== 'object') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is a function and not a class: export a definition, a class or an instance`,
      { source },
    );
  }
  try {
    return new Class(options as never);
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause; // It says all that is needed.
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the constructor of ${source} threw: ${message}; it got one argument, the options ${show(options)}`,
      { source },
      { cause },
    );
  }
}

/**
 * What a definition's `create` returns.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it throws, or returns no object
 */
export function created<T>(create: () => T, source: string): T {
  try {
    return madeObject(create(), `create of ${source}`);
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_PLUGIN_LOAD')) throw cause;
    if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `create of ${source} threw: ${message}`,
      { source },
      { cause },
    );
  }
}

function madeObject<T>(made: T, by: string): T {
  if (typeof made === 'object' && made !== null && !isPromise(made)) return made;
  const what = isPromise(made) ? 'a promise; what it makes is needed at once' : show(made);
  throw new YardmasterError('ERR_PLUGIN_LOAD', `${by} returned ${what}`, { by });
}

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

// The only access to the injection library, which needs its metadata polyfill to be loaded first.
// Every constructor parameter names its token: types leave no trace at run time.

/** Tokens of the constructor parameters of a class, by position. */
const declared = new WeakMap<object, Token<unknown>[]>();

/** Says what a constructor parameter is given: `constructor(@inject(CLOCK) private readonly clock: Clock)`. */
export function inject(token: Token<unknown>): ParameterDecorator {
  return (target, key, index) => {
    const tokens = declared.get(target) ?? [];
    declared.set(target, tokens);
    tokens[index] = token;
    injectId(token.id)(target, key, index);
  };
}

/** The tokens that the parameters of a class were declared with; undefined: none were. */
export function declaredTokens(target: object): readonly Token<unknown>[] | undefined {
  return declared.get(target);
}

/** What may be replaced in a host. */
interface Replaceable {
  readonly module: readonly Provider[];
  /** Collaborators that are in use before plugins are loaded, so that only a program can replace them. */
  readonly early?: readonly Provider[];
}

/** A plugin of the configuration that may replace collaborators. */
export interface ProvidingPlugin {
  readonly name: string;
  readonly provide: readonly Provider[];
}

/**
 * Registers the collaborators that the program around a host replaces.
 * @throws YardmasterError `ERR_PROVIDER` for a token that no collaborator has, or that is provided twice
 */
export function replaceForProgram(
  container: Container,
  { module, early = [] }: Replaceable,
  provide: readonly Provider[] = [],
): void {
  const seen = new Set<symbol>();
  for (const provider of provide) {
    const { token } = provider;
    checkKnown(token, { module: [...early, ...module] });
    if (seen.has(token.id)) throw providerError(token, 'is provided twice; remove one of both');
    seen.add(token.id);
    checkValue(provider);
  }
  container.register(provide);
}

/**
 * Registers the collaborators that the configured plugins replace, but for those of the program.
 * @throws YardmasterError `ERR_PROVIDER` when two plugins replace the same one, or one that is in use already
 */
export function replaceForPlugins(
  container: Container,
  replaceable: Replaceable,
  plugins: readonly ProvidingPlugin[],
  program: readonly Provider[] = [],
): void {
  const owners = new Map<symbol, string>();
  const kept = new Set(program.map(({ token }) => token.id));
  for (const { name, provide } of plugins) {
    for (const provider of provide) {
      const { token } = provider;
      checkKnown(token, replaceable);
      const other = owners.get(token.id);
      if (other !== undefined) {
        const by =
          other === name
            ? `twice by the plugin "${name}"`
            : `by the plugins "${other}" and "${name}"`;
        throw providerError(token, `is replaced ${by}; remove one of both`);
      }
      owners.set(token.id, name);
      checkValue(provider);
    }
    container.register(provide.filter(({ token }) => !kept.has(token.id)));
  }
}

/**
 * Refuses a plugin that replaces collaborators of what runs already: they hold each other directly.
 * @throws YardmasterError `ERR_PROVIDER`
 */
export function refuseProviders({ name, provide }: ProvidingPlugin, host: string): void {
  const [first] = provide;
  if (first === undefined) return;
  const what = `cannot be replaced by the plugin "${name}" while the ${host} runs; list the plugin in the configuration`;
  throw providerError(first.token, what);
}

function checkValue(provider: Provider): void {
  if ('useValue' in provider) checkedService(provider.token, provider.useValue, 'useValue is');
}

function checkKnown(token: Provider['token'], { module, early = [] }: Replaceable): void {
  if (!isToken(token)) throw noToken('a provider', token);
  if (module.some((provider) => provider.token.id === token.id)) return;
  const names = module.map((provider) => nameOf(provider.token));
  const isEarly = early.some((provider) => provider.token.id === token.id);
  throw providerError(
    token,
    isEarly
      ? 'is in use before plugins are loaded; replace it with createScheduler({ provide })'
      : `does not exist${hint(nameOf(token), names)}; there are ${names.join(', ')}`,
  );
}

/** Services that every plugin can ask its context for. */
export const CLOCK: Token<Clock> = token('clock');
export const LOGGER: Token<Logger> = token('logger');

/** Values that a host receives. The token of each of its own parts is in the file of that part. */
export const BUILTINS: Token<Builtins> = token('builtins');
export const CONFIG: Token<Config> = token('config');
export const CONFIG_FOLDER: Token<string> = token('config-folder');
export const LOADED_CONFIG: Token<LoadedConfig> = token('loaded-config');
