/** What benchmarks run: as little as a task can do. Of ours and of the peers alike. */
export function addOne(value: number): number {
  return value + 1;
}
