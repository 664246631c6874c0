/** Arrays up to this length keep their room when they are emptied. */
const KEPT_MAX = 64;

/**
 * Empties an array that is going to be filled again. `length = 0` gives its room away, and the next
 * `push` must ask for it again; popping keeps it.
 */
export function empty(array: unknown[]): void {
  if (array.length > KEPT_MAX) array.length = 0;
  else while (array.length > 0) array.pop();
}
