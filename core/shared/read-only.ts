/**
 * Views of the scheduler's state that cannot change it. Policies, hooks and listeners that are not part of this
 * package get them in the place of the state itself, so that a mistake there is an error with a name, and not a
 * wrong result of another task.
 *
 * A view reads through: it is always as new as what it shows, and what is read from it is a view again. Each object
 * has one view, so views can be compared and be keys of a map. Extensions of this package are trusted with the
 * state itself, because a view costs some fifty nanoseconds for each property that is read.
 */
import { YardmasterError } from '../api/errors.ts';

/** Views by what they show, and the reverse. */
const views = new WeakMap<object, object>();
const originals = new WeakMap<object, object>();
/** Extensions that see the state itself. */
const trusted = new WeakSet<object>();
/** Objects that are meant to be changed by those who get them. */
const open = new WeakSet<object>();

/**
 * Methods that only read: they run on the object itself, and their arguments may be views. All others run on the
 * view, where everything that they write is refused.
 */
const READING = new Set<PropertyKey>([
  ...['at', 'copies', 'entries', 'get', 'has', 'keys', 'peek', 'suits', 'toString', 'values'],
  ...['difference', 'intersection', 'isDisjointFrom', 'isSubsetOf', 'isSupersetOf'],
  ...['symmetricDifference', 'union', 'toJSON', 'valueOf'],
]);

/** Lets an extension of this package, a definition, a class or an instance, see the state itself. */
export function trust<T extends object>(extension: T): T {
  trusted.add(extension);
  return extension;
}

/** True for an extension that sees the state itself. */
export function isTrusted(extension: unknown): boolean {
  return isObject(extension) && trusted.has(extension);
}

/** A method or function of the state. */
type Method = (...args: unknown[]) => unknown;

/** Exempts an object that those who get it are meant to change. */
export function leaveOpen<T extends object>(value: T): T {
  open.add(value);
  return value;
}

/**
 * A view of a value; values that cannot be changed are returned as they are. Bytes are copied.
 * O(1) but for bytes.
 */
export function readOnly<T>(value: T): T {
  return viewOf(value, undefined, '') as T;
}

/** What a view shows; anything else as it is. */
export function original<T>(value: T): T {
  return isObject(value) ? ((originals.get(value) as T | undefined) ?? value) : value;
}

/**
 * An object whose methods are given views, and whose answers are taken back from views: a policy, or a handler.
 * @param asTheyAre - names of methods whose first argument is given as it is
 */
export function withReadOnlyArguments<T extends object>(
  callee: T,
  asTheyAre: ReadonlySet<PropertyKey> = new Set(),
): T {
  const calls = new Map<PropertyKey, { readonly method: unknown; readonly call: unknown }>();
  return new Proxy(callee, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function' || name === 'constructor') return method;
      const known = calls.get(name);
      if (known?.method === method) return known.call;
      const isFirstAsItIs = asTheyAre.has(name);
      const call = (...given: unknown[]): unknown => {
        const shown = given.map((value, n) => (n === 0 && isFirstAsItIs ? value : readOnly(value)));
        return original(Reflect.apply(method, target, shown));
      };
      calls.set(name, { method, call });
      return call;
    },
  });
}

function viewOf(value: unknown, parent: Reader | undefined, property: PropertyKey): unknown {
  if (!isObject(value)) return value;
  const known = views.get(value);
  if (known !== undefined) return known;
  if (originals.has(value) || open.has(value) || isSafe(value)) return value;
  if (typeof value === 'function') return callOf(value as Method, undefined);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return structuredClone(value);
  // A proxy must say of a frozen object what that says itself, so a frozen one is read from a copy.
  const target = Object.isExtensible(value) ? value : shallowCopy(value);
  const view = new Proxy(target, new Reader(value, parent, property));
  views.set(value, view);
  originals.set(view, value);
  return view;
}

/** A function that takes views and gives one. */
function callOf(method: Method, self: unknown): Method {
  return (...args) => {
    const result = method.apply(self, args.map(original));
    const isIterator =
      typeof (result as Partial<Iterator<unknown>> | undefined)?.next === 'function';
    return isIterator ? viewsIn(result as Iterator<unknown>) : readOnly(result);
  };
}

/** True for what has no state of the scheduler in it. */
function isSafe(value: object): boolean {
  return (
    value instanceof Error ||
    value instanceof Promise ||
    value instanceof Date ||
    value instanceof AbortSignal
  );
}

function shallowCopy(value: object): object {
  if (Array.isArray(value)) return [...(value as readonly unknown[])];
  const copy = Object.create(Object.getPrototypeOf(value) as object | null) as object;
  return Object.assign(copy, value);
}

/** What a proxy does for one object: reads are passed on, and writes are refused. */
class Reader implements ProxyHandler<object> {
  constructor(
    private readonly value: object,
    private readonly parent: Reader | undefined,
    private readonly property: PropertyKey,
  ) {}

  get(_target: object, name: PropertyKey, view: object): unknown {
    const { value } = this;
    // Getters run on the object itself: they may remember what they have computed.
    const found: unknown = (value as Record<PropertyKey, unknown>)[name];
    if (typeof found !== 'object') {
      return typeof found === 'function' ? this.method(name, found, view) : found;
    }
    return found === null ? null : viewOf(found, this, name);
  }

  set(_target: object, name: PropertyKey): never {
    throw this.refusal(`set "${String(name)}" of`);
  }

  defineProperty(_target: object, name: PropertyKey): never {
    throw this.refusal(`set "${String(name)}" of`);
  }

  deleteProperty(_target: object, name: PropertyKey): never {
    throw this.refusal(`delete "${String(name)}" of`);
  }

  setPrototypeOf(): never {
    throw this.refusal('change the prototype of');
  }

  preventExtensions(): never {
    throw this.refusal('freeze');
  }

  getOwnPropertyDescriptor(target: object, name: PropertyKey): PropertyDescriptor | undefined {
    const descriptor = Reflect.getOwnPropertyDescriptor(target, name);
    if (descriptor === undefined || !('value' in descriptor)) return descriptor;
    return { ...descriptor, value: viewOf(descriptor.value, this, name) };
  }

  private method(name: PropertyKey, found: unknown, view: object): unknown {
    const { value } = this;
    if (name === 'constructor') return found;
    // The methods of an array work on the view, and so read views and cannot write.
    if (Array.isArray(value)) return found;
    if (name === Symbol.iterator || READING.has(name)) return callOf(found as Method, value);
    const isBuiltin = value instanceof Map || value instanceof Set;
    if (isBuiltin && name === 'forEach') {
      return (visit: (...args: unknown[]) => void, self?: unknown): void => {
        for (const [key, item] of value instanceof Map ? value : value.entries()) {
          visit.call(self, readOnly<unknown>(item), readOnly<unknown>(key), view);
        }
      };
    }
    if (isBuiltin) {
      return () => {
        throw this.refusal(`${String(name)}() on`);
      };
    }
    return Object.hasOwn(value, name) ? callOf(found as Method, value) : found;
  }

  private refusal(what: string): YardmasterError {
    return new YardmasterError(
      'ERR_READ_ONLY',
      `it tried to ${what} ${this.name()}, which is the scheduler's own: copy what is to be changed`,
      { what: `${what} ${this.name()}` },
    );
  }

  /** For messages: `items of whoHas of the task "x"`. */
  private name(): string {
    const { key, state, address, name } = this.value as Readonly<Record<string, unknown>>;
    if (typeof key === 'string') return `the ${state === undefined ? 'entry' : 'task'} "${key}"`;
    if (typeof address === 'string') return `the worker "${address}"`;
    if (this.parent !== undefined) return `${String(this.property)} of ${this.parent.name()}`;
    const kind = Array.isArray(this.value) ? 'list' : 'object';
    return typeof name === 'string' ? `"${name}"` : `the ${kind} that it was given`;
  }
}

/** What an iterator brings, as views. */
function* viewsIn(items: Iterator<unknown>): Generator {
  for (let step = items.next(); step.done !== true; step = items.next()) yield pairOf(step.value);
}

/** An entry of a map is a list of its own. */
function pairOf(item: unknown): unknown {
  const isPair = Array.isArray(item) && item.length === 2 && Object.isExtensible(item);
  return isPair ? item.map((part: unknown) => readOnly(part)) : readOnly(item);
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
