/** Whether a value has a method `then`: promises of other realms and libraries are recognised as well. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
