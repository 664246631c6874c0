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

/** The identity of a service: its class, or a token where it is an interface or a plain value. */
export type ServiceId<T> = Token<T> | (abstract new (...dependencies: never[]) => T);

/** The collaborators of a host. */
export interface Services {
  /** @throws YardmasterError `ERR_PROVIDER` when there is no such service, or when it cannot be made */
  get<T>(id: ServiceId<T>): T;
}

/**
 * A class that a host can make: it inherits the constructor of the class that it extends, or lists what its
 * parameters are given by `static inject = [CLOCK, Delivery]`.
 */
export type Injectable<T> = new (...dependencies: never[]) => T;

/** The source of a service: an instance of a class, the result of a function, or a value. Made once. */
export type Provider<T = unknown> = { readonly token: ServiceId<T> } & (
  | { readonly useClass: Injectable<NoInfer<T>> }
  | { readonly useFactory: (services: Services) => NoInfer<T> }
  | { readonly useValue: NoInfer<T> }
);

export function byFactory<T>(token: ServiceId<T>, useFactory: (services: Services) => T): Provider {
  return { token, useFactory };
}

/** Provides a value that is there already. */
export function byValue<T>(token: ServiceId<T>, useValue: T): Provider {
  return { token, useValue };
}
