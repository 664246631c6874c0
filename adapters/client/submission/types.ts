import type { Future } from '../future.ts';
import type { Ref } from './ref.ts';

/** Values that hold no futures. */
type Leaf =
  | string
  | number
  | boolean
  | bigint
  | symbol
  | null
  | undefined
  | Date
  | RegExp
  | ArrayBuffer
  | ArrayBufferView
  | ((...args: never) => unknown);

type Nested<T, Handle> = T extends Leaf
  ? never
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, V | Handle>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<V | Handle>
      : never;

/** What may be given where a task wants a `T`: the value, its future, or a structure with futures. */
export type Argument<T> =
  | T
  | Future<T>
  | (T extends Leaf
      ? never
      : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
        ? Nested<T, Future<unknown>>
        : T extends object
          ? { [Part in keyof T]: Argument<T[Part]> }
          : never);

/** The same inside a graph, where names of other tasks of the graph may be given too. */
export type GraphArgument<T> =
  | T
  | Future<T>
  | Ref<T>
  | (T extends Leaf
      ? never
      : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
        ? Nested<T, Future<unknown> | Ref<unknown>>
        : T extends object
          ? { [Part in keyof T]: GraphArgument<T[Part]> }
          : never);

/** The arguments of a task function, each with futures anywhere. */
export type ArgumentsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: Argument<Args[Index]>;
};

/** The arguments of a task in a graph. */
export type GraphArgumentsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: GraphArgument<Args[Index]>;
};

/** One sequence for each argument of a task function. */
export type ColumnsOf<Args extends readonly unknown[]> = {
  [Index in keyof Args]: Iterable<Argument<Args[Index]>>;
};

/** A structure with each future replaced by its result. */
export type Gathered<T> =
  T extends Future<infer Result>
    ? Result
    : T extends Leaf
      ? T
      : T extends ReadonlyMap<infer K, infer V>
        ? Map<K, Gathered<V>>
        : T extends ReadonlySet<infer V>
          ? Set<Gathered<V>>
          : T extends object
            ? { [Part in keyof T]: Gathered<T[Part]> }
            : T;
