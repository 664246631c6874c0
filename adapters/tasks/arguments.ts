import { YardmasterError } from '../../core/api/index.ts';
import { isPlainObject, isReference } from '../../core/util/values.ts';
import { deserialise, notSerialisable, serialise } from './serialise.ts';
import { pushTo } from '../../core/util/collections.ts';

/** Arguments on their way to a task. */
export interface PackedArguments {
  readonly bytes: Uint8Array;
  /** The value of the bytes, with the containers that the arguments have. */
  readonly content: unknown;
  /** Keys of the tasks whose results belong into the arguments, each once, in the order found. */
  readonly dependencies: string[];
}

/**
 * The place of a result: the very container inside the arguments, the place in it, and the index of
 * the dependency. A place is an index, the name of a property, or the position of a Map's entry or
 * a Set's member.
 *
 * Nothing in the arguments stands for a result, so no user data can be mistaken for it: holes are
 * listed beside the arguments, and the serialisation keeps the identity of the containers.
 */
type Hole = [container: object, place: Place, dependency: number];
type Place = number | string | ['key' | 'value', entry: number];

type Allocate = (nbytes: number) => Uint8Array;

interface Packed {
  readonly args: unknown[];
  readonly dependencies: string[];
  readonly holes: Hole[];
}

/**
 * Serialises arguments, taking out every value that stands for the result of a task.
 *
 * It looks into arrays, plain objects, Maps (keys and values) and Sets, at any depth and through
 * cycles, but not into instances of classes. The arguments themselves are not changed. O(values).
 *
 * @param keyOf - the key of the task whose result the value stands for; undefined: ordinary data
 * @param allocate - as for {@link serialise}
 * @param isSharing - as for {@link serialise}
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of the offending value
 */
export function packArguments(
  args: readonly unknown[],
  keyOf: (value: unknown) => string | undefined,
  allocate?: Allocate,
  isSharing = false,
): PackedArguments {
  const write = (packed: Packed): Uint8Array => serialiseArguments(packed, allocate, isSharing);
  try {
    if (!mentionsResult(args, keyOf)) {
      const content = [...args];
      const bytes = write({ args: content, dependencies: [], holes: [] });
      return { bytes, content, dependencies: [] };
    }
    const packed = new Packer(keyOf).pack(args);
    const bytes = write(packed);
    return { bytes, content: packed, dependencies: packed.dependencies };
  } catch (thrown) {
    // A getter among the arguments has thrown.
    throw YardmasterError.is(thrown) ? thrown : notSerialisable(args, 'arguments', thrown);
  }
}

/**
 * The arguments with the results in their places. A result that is used twice is the same object
 * both times.
 *
 * @param inputs - serialised results by key
 * @param read - makes a result of its bytes. Default: `deserialise`
 * @throws YardmasterError `ERR_FRAME` on unreadable bytes, `ERR_LOST_DEPENDENCY` when an input lacks
 */
export function unpackArguments(
  bytes: Uint8Array,
  inputs: ReadonlyMap<string, Uint8Array>,
  read: (bytes: Uint8Array) => unknown = deserialise,
): unknown[] {
  return unpackWith(bytes, (key) => {
    const input = inputs.get(key);
    if (input === undefined) {
      throw new YardmasterError(
        'ERR_LOST_DEPENDENCY',
        `the result of "${key}" was not handed to the task`,
        {
          key,
        },
      );
    }
    return read(input);
  });
}

/**
 * As {@link unpackArguments}, with something else in the places of the results.
 * @param standIn - called once for each key
 * @throws YardmasterError `ERR_FRAME` on unreadable bytes
 */
export function unpackWith(bytes: Uint8Array, standIn: (key: string) => unknown): unknown[] {
  const packed = deserialise(bytes) as unknown[] | Packed;
  if (Array.isArray(packed)) return packed;
  const { args, dependencies, holes } = packed;
  const results = dependencies.map(standIn);
  const unordered = new Map<object, Hole[]>();
  for (const hole of holes) {
    const [container, place, dependency] = hole;
    if (container instanceof Map || container instanceof Set) {
      pushTo(unordered, container, hole);
    } else {
      (container as Record<string, unknown>)[place as string] = results[dependency];
    }
  }
  for (const [container, its] of unordered) {
    if (container instanceof Map) fillMap(container, its, results);
    else fillSet(container as Set<unknown>, its, results);
  }
  return args;
}

/** Arguments without holes travel as the bare array. */
function serialiseArguments(
  packed: Packed,
  allocate: Allocate | undefined,
  isSharing: boolean,
): Uint8Array {
  if (packed.holes.length === 0) return serialise(packed.args, 'arguments', allocate, isSharing);
  try {
    return serialise(packed, 'arguments', allocate, isSharing);
  } catch (thrown) {
    serialise(packed.args, 'arguments', allocate, isSharing); // Throws too, with a path that the caller knows.
    throw thrown;
  }
}

function isContainer(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return (
    Array.isArray(value) || value instanceof Map || value instanceof Set || isPlainObject(value)
  );
}

function* membersOf(container: object): Iterable<unknown> {
  if (container instanceof Map) {
    for (const [key, value] of container) {
      yield key;
      yield value;
    }
  } else if (container instanceof Set || Array.isArray(container)) yield* container;
  else yield* Object.values(container);
}

/** True when some of the arguments stand for a result, or hold such a value. O(values). */
export function mentionsResult(
  args: readonly unknown[],
  keyOf: (value: unknown) => string | undefined,
): boolean {
  if (!args.some(isReference)) return false;
  const seen = new Set<object>();
  const stack: object[] = [args];
  for (let container = stack.pop(); container !== undefined; container = stack.pop()) {
    if (seen.has(container)) continue;
    seen.add(container);
    for (const member of Array.isArray(container) ? container : membersOf(container)) {
      if (!isReference(member)) continue;
      if (keyOf(member) !== undefined) return true;
      if (isContainer(member)) stack.push(member);
    }
  }
  return false;
}

/** Copies the containers of some arguments and leaves holes where results belong. */
class Packer {
  private readonly dependencies: string[] = [];
  private readonly indexes = new Map<string, number>();
  private readonly holes: Hole[] = [];
  private readonly copies = new Map<object, object>();
  private readonly unfilled: [source: object, copy: object][] = [];

  constructor(private readonly keyOf: (value: unknown) => string | undefined) {}

  pack(args: readonly unknown[]): Packed {
    const copy = this.copyOf(args) as unknown[];
    for (let next = this.unfilled.pop(); next !== undefined; next = this.unfilled.pop()) {
      this.fill(...next);
    }
    return { args: copy, dependencies: this.dependencies, holes: this.holes };
  }

  private fill(source: object, copy: object): void {
    if (source instanceof Map) {
      let entry = 0;
      for (const [key, value] of source) {
        // A placeholder that is a key needs its own identity, or two of them would become one
        // entry.
        const copiedKey = this.put(key, copy, ['key', entry]) ?? { value: {} };
        (copy as Map<unknown, unknown>).set(
          copiedKey.value,
          this.put(value, copy, ['value', entry])?.value,
        );
        entry++;
      }
    } else if (source instanceof Set) {
      let entry = 0;
      for (const member of source) {
        (copy as Set<unknown>).add((this.put(member, copy, entry++) ?? { value: {} }).value);
      }
    } else if (Array.isArray(source)) {
      source.forEach((member, index) => {
        (copy as unknown[])[index] = this.put(member, copy, index)?.value;
      });
    } else {
      for (const [name, member] of Object.entries(source)) {
        // Not an assignment: that would take `__proto__` for the prototype.
        Object.defineProperty(copy, name, {
          value: this.put(member, copy, name)?.value,
          ...{ enumerable: true, writable: true, configurable: true },
        });
      }
    }
  }

  /** The value to put into the copy; undefined: a hole. */
  private put(member: unknown, container: object, place: Place): { value?: unknown } | undefined {
    if (!isReference(member)) return { value: member };
    const key = this.keyOf(member);
    if (key === undefined) return { value: isContainer(member) ? this.copyOf(member) : member };
    this.holes.push([container, place, this.indexOf(key)]);
    return undefined;
  }

  private copyOf(source: object): object {
    const known = this.copies.get(source);
    if (known !== undefined) return known;
    const copy: object =
      source instanceof Map
        ? new Map()
        : source instanceof Set
          ? new Set()
          : Array.isArray(source)
            ? new Array(source.length)
            : {};
    this.copies.set(source, copy);
    this.unfilled.push([source, copy]);
    return copy;
  }

  private indexOf(key: string): number {
    const known = this.indexes.get(key);
    if (known !== undefined) return known;
    const index = this.dependencies.push(key) - 1;
    this.indexes.set(key, index);
    return index;
  }
}

function fillMap(map: Map<unknown, unknown>, holes: readonly Hole[], results: unknown[]): void {
  const entries = [...map];
  for (const [, place, dependency] of holes) {
    const [part, index] = place as ['key' | 'value', number];
    const entry = entries[index] as [unknown, unknown];
    entry[part === 'key' ? 0 : 1] = results[dependency];
  }
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

function fillSet(set: Set<unknown>, holes: readonly Hole[], results: unknown[]): void {
  const members = [...set];
  for (const [, place, dependency] of holes) members[place as number] = results[dependency];
  set.clear();
  for (const member of members) set.add(member);
}
