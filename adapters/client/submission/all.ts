/** The same value for every row of a `map`: as many as the other columns have. Made by {@link all}. */
export class Constant<T> implements Iterable<T> {
  constructor(readonly value: T) {}

  /** Without end. */
  *[Symbol.iterator](): Generator<T, never, undefined> {
    for (;;) yield this.value;
  }
}

/** Gives every call of a `map` the same argument: `client.map(resize, images, all({ width: 200 }))`. */
export function all<T>(value: T): Iterable<T> {
  return new Constant(value);
}
