/**
 * An empty array of the kind that V8 gives to arrays of objects. `[]` begins as one of small integers,
 * and a frozen array is of neither kind: a loop that meets such lists among others calls its iterator
 * step by step instead of running through the array.
 */
export function emptyList<T extends object>(): T[] {
  const list: object[] = [{}];
  list.pop();
  return list as T[];
}
