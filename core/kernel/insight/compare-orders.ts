import type { GraphTask } from '../../messages/stimulus.ts';

/** Two orders of one graph. */
interface OrderComparison {
  readonly isSame: boolean;
  /** Most results alive at once, if one thread computed the graph in that order. */
  readonly active: number;
  readonly shadow: number;
}

/** O(tasks log tasks + dependencies). */
export function comparePeaks(
  tasks: readonly GraphTask[],
  active: ArrayLike<number>,
  shadow: ArrayLike<number>,
): OrderComparison {
  const first = sequence(tasks.length, active);
  const second = sequence(tasks.length, shadow);
  const isSame = first.every((index, position) => index === second[position]);
  const graph = new Graph(tasks);
  const peak = graph.peak(first);
  return { isSame, active: peak, shadow: isSame ? peak : graph.peak(second) };
}

function sequence(count: number, ranks: ArrayLike<number>): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  return order.sort((a, b) => (ranks[a] as number) - (ranks[b] as number) || a - b);
}

/** A result is alive from the step after it was computed until its last dependent was. */
class Graph {
  private readonly dependencies: readonly (readonly number[])[];
  private readonly dependentCounts: Uint32Array;

  constructor(tasks: readonly GraphTask[]) {
    const indexByKey = new Map(tasks.map(({ key }, index) => [key, index]));
    this.dependentCounts = new Uint32Array(tasks.length);
    this.dependencies = tasks.map(({ dependencies }) =>
      [...new Set(dependencies)].flatMap((key) => indexByKey.get(key) ?? []),
    );
    for (const indices of this.dependencies) {
      for (const index of indices) this.dependentCounts[index] = this.countOf(index) + 1;
    }
  }

  peak(order: Uint32Array): number {
    const left = this.dependentCounts.slice();
    let live = 0;
    let peak = 0;
    for (const index of order) {
      for (const dependency of this.dependencies[index] ?? []) {
        left[dependency] = (left[dependency] as number) - 1;
        if (left[dependency] === 0) live--;
      }
      if (this.countOf(index) > 0) live++;
      peak = Math.max(peak, live);
    }
    return peak;
  }

  private countOf(index: number): number {
    return this.dependentCounts[index] as number;
  }
}
