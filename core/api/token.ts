/** A name for a service, typed by what it gives. */
export interface Token<T> {
  readonly id: symbol;
  /** Never set; carries the type. */
  readonly type?: T;
}

/** Tokens of the same name are the same, also across copies of this package. */
export function token<T>(name: string): Token<T> {
  return { id: Symbol.for(`yardmaster:${name}`) };
}

/** The collaborators of a host, by token. */
export interface Services {
  /** @throws YardmasterError `ERR_PROVIDER` when nothing is registered for the token */
  get<T>(token: Token<T>): T;
}

/**
 * A class whose constructor parameters name their tokens: by `static inject = [CLOCK, LOGGER]`, by decorators,
 * or by inheriting the constructor of the class that it extends.
 */
export type Injectable<T> = new (...dependencies: never[]) => T;

/** What a host uses for a token: an instance of a class, what a function returns, or a value. Made once. */
export type Provider<T = unknown> = { readonly token: Token<T> } & (
  | { readonly useClass: Injectable<T> }
  | { readonly useFactory: (services: Services) => T }
  | { readonly useValue: T }
);

/** Provides an instance of a class. */
export function byClass<T>(token: Token<T>, useClass: Injectable<T>): Provider {
  return { token, useClass };
}

/** Provides what a function makes. */
export function byFactory<T>(token: Token<T>, useFactory: (services: Services) => T): Provider {
  return { token, useFactory };
}

/** Provides a value that is there already. */
export function byValue<T>(token: Token<T>, useValue: T): Provider {
  return { token, useValue };
}
