import 'reflect-metadata';
import {
  container as libraryContainer,
  inject as injectId,
  injectable,
  type InjectionToken,
  Lifecycle,
  scoped,
} from 'tsyringe';
import { messageOf, YardmasterError } from '../api/errors.ts';
import type { Injectable, Provider, ServiceId, Services, Token } from '../api/token.ts';
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
    const message = messageOf(cause);
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the constructor of ${source} threw: ${message}; it got one argument, the options ${show(options)}`,
      { source },
      { cause },
    );
  }
}

/**
 * The result of a definition's `create`.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it throws, or returns no object
 */
export function created<T>(create: () => T, source: string): T {
  try {
    return madeObject(create(), `create of ${source}`);
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_PLUGIN_LOAD')) throw cause;
    if (YardmasterError.is(cause, 'ERR_CONFIG')) throw cause;
    const message = messageOf(cause);
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
  const what = isPromise(made)
    ? 'a promise; what it makes is needed at once'
    : `${show(made)}; it returns an object with methods`;
  throw new YardmasterError('ERR_PLUGIN_LOAD', `${by} returned ${what}`, { by });
}

/**
 * The collaborators of one host. Each is made when it is first needed, once, and keeps direct references to
 * the others: nothing is looked up while the host runs. A class that is marked as a {@link collaborator} needs no
 * provider.
 */
export class Container implements Services {
  private readonly library = libraryContainer.createChildContainer();
  /** The services that are being made, each for the one before it. */
  private readonly making: ServiceId<unknown>[] = [];
  /** The latest failure: the library keeps only its message. */
  private failure: YardmasterError | undefined;

  /**
   * Later providers of a service replace earlier ones.
   * @throws YardmasterError `ERR_PROVIDER`
   */
  register(providers: readonly Provider[]): this {
    for (const provider of providers) this.add(provider);
    return this;
  }

  /** @throws YardmasterError `ERR_PROVIDER` when there is no such service, or something that it needs cannot be had */
  get<T>(id: ServiceId<T>): T {
    if (!isServiceId(id)) throw noToken('what was asked for', id);
    try {
      return this.library.resolve<T>(libraryId(id));
    } catch (cause) {
      throw this.failureOf(id, cause);
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
      this.library.register(libraryId(token), { useValue: provider.useValue });
    } else {
      throw providerError(token, 'needs useClass, useFactory or useValue in its provider');
    }
  }

  /** Registers what is made when it is first needed. */
  private addMade(token: ServiceId<unknown>, make: () => unknown): void {
    let made: { readonly service: unknown } | undefined;
    this.library.register(libraryId(token), {
      useFactory: () => (made ??= { service: this.make(token, make) }).service,
    });
  }

  private make(token: ServiceId<unknown>, make: () => unknown): unknown {
    const { making } = this;
    const first = making.findIndex((one) => libraryId(one) === libraryId(token));
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
  private failureOf(token: ServiceId<unknown>, cause: unknown): YardmasterError {
    const message = messageOf(cause);
    const { failure } = this;
    if (YardmasterError.is(cause)) this.failure = cause;
    else if (failure === undefined || !message.includes(failure.message)) {
      this.failure = providerError(token, `cannot be made: ${message}`, cause);
    }
    return this.failure as YardmasterError;
  }
}

/** The id of a service as the library knows it: the symbol of a token, or the class. */
function libraryId<T>(id: ServiceId<T>): InjectionToken<T> {
  return isToken(id) ? id.id : (id as new () => T);
}

function isServiceId(value: unknown): value is ServiceId<unknown> {
  return isToken(value) || isClass(value);
}

function isClass(value: unknown): value is new (...given: never[]) => object {
  return (
    typeof value === 'function' && typeof (value as { prototype?: unknown }).prototype === 'object'
  );
}

export function isToken(value: unknown): value is Token<unknown> {
  return typeof (value as { id?: unknown } | null | undefined)?.id === 'symbol';
}

/**
 * Refuses a service that cannot be used as one.
 * @param how - where it comes from: `useFactory returned`
 * @throws YardmasterError `ERR_PROVIDER`
 */
export function checkedService<T>(token: ServiceId<unknown>, service: T, how: string): T {
  if (service === undefined || service === null) {
    throw providerError(token, `cannot be used: ${how} nothing; give the service itself`);
  }
  if (!isPromise(service)) return service;
  throw providerError(
    token,
    `cannot be used: ${how} a promise, and collaborators are made at once; await it before, and give what it resolves to as useValue`,
  );
}

/** Name of a service in messages: of its class, or of its token. */
export function nameOf(id: ServiceId<unknown> | undefined): string {
  if (!isToken(id)) return id?.name ?? '';
  return (id.id.description ?? '').replace(/^yardmaster:/, '');
}

/** For something that stands where a token is wanted. */
export function noToken(what: string, got: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PROVIDER',
    `${what} has no token, but ${show(got)}; is the import of the token right?`,
  );
}

/** @param what - follows the name of the service: `cannot be made: …` */
export function providerError(
  token: ServiceId<unknown> | undefined,
  what: string,
  cause?: unknown,
): YardmasterError {
  const message = `the collaborator "${nameOf(token)}" ${what}`;
  return new YardmasterError('ERR_PROVIDER', message, { token: nameOf(token) }, { cause });
}

/**
 * Lets the library construct a class of another program. It has no decorators: it names its services in
 * `static inject`, or inherits the constructor of the class that it extends.
 */
function prepare(token: ServiceId<unknown>, Class: Injectable<unknown>): void {
  if (!isClass(Class)) {
    throw providerError(token, `cannot be made from ${show(Class)}: useClass takes a class`);
  }
  if (Object.hasOwn(Class, 'inject')) {
    const { inject: listed } = Class as unknown as { readonly inject: readonly unknown[] };
    // Its own list, so that it does not change the one of the class that it extends.
    Reflect.defineMetadata(PARAMETERS, [], Class);
    for (const [index, dependency] of listed.entries()) {
      if (!isServiceId(dependency))
        throw noToken(`parameter ${index + 1} of ${Class.name}`, dependency);
      inject(dependency)(Class, undefined, index);
    }
  }
  injectable()(Class);
  const count = parametersOf(Class).length;
  if (Class.length > count) {
    throw providerError(
      token,
      `cannot be made from ${Class.name}: its constructor has ${Class.length} parameters and names services for ${count}; ` +
        'list them in "static inject = [TOKEN, OtherClass, …]", or use useFactory',
    );
  }
}

// The only access to the injection library, which needs its metadata polyfill to be loaded first.

/** Under which the compiler notes the types of constructor parameters (`emitDecoratorMetadata`). */
const PARAMETERS = 'design:paramtypes';

/** The services for the parameters of a constructor; the library has put what was injected in the place of interfaces. */
function parametersOf(Class: object): readonly unknown[] {
  return (Reflect.getMetadata(PARAMETERS, Class) as readonly unknown[] | undefined) ?? [];
}

/** The types that the compiler notes for what is no class. */
const PLAIN: ReadonlySet<unknown> = new Set([Object, String, Number, Boolean, Array, Function]);

const collaborators = new Set<abstract new (...dependencies: never[]) => unknown>();

/**
 * Marks a class as a collaborator: each host makes one instance, when it is first needed. A constructor parameter whose
 * type is a class is given the collaborator of that class; any other one names its token by {@link inject}. The classes
 * of parameters have to be imported as values, and to stand above in the same file.
 */
export function collaborator(Class: new (...dependencies: never[]) => unknown): void {
  scoped(Lifecycle.ContainerScoped)(Class);
  const parameters = parametersOf(Class) as unknown[];
  parameters.length = Math.min(parameters.length, Class.length); // Parameters with defaults are not injected.
  for (let index = 0; index < Class.length; index++) {
    const id = parameters[index];
    // The library describes what was injected by an object.
    if ((typeof id === 'object' && id !== null) || (isClass(id) && !PLAIN.has(id))) continue;
    throw new TypeError(
      `parameter ${index + 1} of ${Class.name} has no class at run time: use @inject(TOKEN), or import its class as a value (emitDecoratorMetadata has to be on)`,
    );
  }
  collaborators.add(Class);
}

/** Says what a constructor parameter is given whose type is no class: `@inject(CLOCK) private readonly clock: Clock`. */
export function inject(id: ServiceId<unknown>): ParameterDecorator {
  return injectId(libraryId(id)) as ParameterDecorator;
}

/** The services of a host that may be replaced besides its collaborators. */
interface Replaceable {
  readonly module: readonly Provider[];
  /** Collaborators that are in use before plugins are loaded, so that only a program can replace them. */
  readonly early?: readonly ServiceId<unknown>[];
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
  { module }: Replaceable,
  provide: readonly Provider[] = [],
): void {
  const seen = new Set<unknown>();
  for (const provider of provide) {
    const { token } = provider;
    checkKnown(token, { module });
    if (seen.has(libraryId(token))) {
      throw providerError(token, 'is provided twice; remove one of both');
    }
    seen.add(libraryId(token));
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
  const owners = new Map<unknown, string>();
  const kept = new Set(program.map(({ token }) => libraryId(token)));
  for (const { name, provide } of plugins) {
    for (const provider of provide) {
      const { token } = provider;
      checkKnown(token, replaceable);
      const other = owners.get(libraryId(token));
      if (other !== undefined) {
        const by =
          other === name
            ? `twice by the plugin "${name}"`
            : `by the plugins "${other}" and "${name}"`;
        throw providerError(token, `is replaced ${by}; remove one of both`);
      }
      owners.set(libraryId(token), name);
      checkValue(provider);
    }
    container.register(provide.filter(({ token }) => !kept.has(libraryId(token))));
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
  if (!isServiceId(token)) throw noToken('a provider', token);
  const id = libraryId(token);
  if (early.some((one) => libraryId(one) === id)) {
    throw providerError(
      token,
      'is in use before plugins are loaded; replace it with createScheduler({ provide })',
    );
  }
  if (collaborators.has(token as never)) return;
  if (module.some((provider) => libraryId(provider.token) === id)) return;
  const names = [...module.map((provider) => provider.token), ...collaborators].map(nameOf);
  throw providerError(
    token,
    `does not exist${hint(nameOf(token), names)}; there are ${names.join(', ')}`,
  );
}
