/**
 * Assertions are for our own bugs and are always on. Errors of the world (input, network, user code)
 * are values or {@link "core/api/errors"} classes instead.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Closes a `switch` over a union: adding a member without a case becomes a compile error. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable case: ${JSON.stringify(value)}`);
}

/** A broken assumption inside Yardmaster itself. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}
