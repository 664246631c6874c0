import { type GraphIndex } from './graph-index.ts';

/**
 * Bits for exact totals, over all nodes, about 64 MB. Graphs that need more (wide and thousands of
 * steps deep) compare by logarithm.
 */
const EXACT_BITS_MAX = 2 ** 29;

/** Two of these still make an exact double. */
const SHORT_MAX = 2 ** 52;

/**
 * For each node the sum of the totals of its dependencies plus one: roots have 1, and shared ancestors
 * count once per path. Such sums grow exponentially with the depth of a graph.
 */
export interface Totals {
  /** Less than 0 when the total of `a` is less, 0 when both are equal. */
  compare(a: number, b: number): number;
}

/** O(nodes + links); with {@link EXACT_BITS_MAX} bits of big integers where the sums get long. */
export function totalDependencies(graph: GraphIndex, sequence: Int32Array): Totals {
  const sums = sumUp(graph, sequence);
  let largest = 0;
  for (let node = 0; node < sums.length; node++) {
    if ((sums[node] as number) > largest) largest = sums[node] as number;
  }
  if (largest <= Number.MAX_SAFE_INTEGER) return new ExactTotals(sums);
  const logarithms = sumUpLogarithms(graph, sequence);
  let bits = 0;
  for (let node = 0; node < sums.length; node++) {
    if ((sums[node] as number) > Number.MAX_SAFE_INTEGER) bits += logarithms[node] as number;
  }
  if (bits > EXACT_BITS_MAX) return new ExactTotals(logarithms);
  return new LongTotals(sums, longSums(graph, sequence, sums));
}

class ExactTotals implements Totals {
  constructor(private readonly sums: Float64Array) {}

  compare(a: number, b: number): number {
    return (this.sums[a] as number) - (this.sums[b] as number);
  }
}

/** Sums beyond the integers that a double can hold. */
class LongTotals implements Totals {
  constructor(
    private readonly sums: Float64Array,
    private readonly exact: readonly (bigint | undefined)[],
  ) {}

  compare(a: number, b: number): number {
    const left = this.exact[a];
    const right = this.exact[b];
    if (left !== undefined && right !== undefined) {
      return left < right ? -1 : left > right ? 1 : 0;
    }
    // One of both fits into a double: they compare as such, the other one being larger.
    return (this.sums[a] as number) - (this.sums[b] as number);
  }
}

function sumUp({ dependencies }: GraphIndex, sequence: Int32Array): Float64Array {
  const { offsets, targets } = dependencies;
  const sums = new Float64Array(sequence.length);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    const end = offsets[node + 1] as number;
    let sum = 1;
    for (let n = offsets[node] as number; n < end; n++) sum += sums[targets[n] as number] as number;
    sums[node] = sum;
  }
  return sums;
}

function sumUpLogarithms({ dependencies }: GraphIndex, sequence: Int32Array): Float64Array {
  const { offsets, targets } = dependencies;
  const logarithms = new Float64Array(sequence.length);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    const start = offsets[node] as number;
    const end = offsets[node + 1] as number;
    let largest = 0;
    for (let n = start; n < end; n++) {
      largest = Math.max(largest, logarithms[targets[n] as number] as number);
    }
    let sum = 2 ** -largest;
    for (let n = start; n < end; n++) {
      sum += 2 ** ((logarithms[targets[n] as number] as number) - largest);
    }
    logarithms[node] = largest + Math.log2(sum);
  }
  return logarithms;
}

function longSums(
  graph: GraphIndex,
  sequence: Int32Array,
  sums: Float64Array,
): (bigint | undefined)[] {
  const { offsets, targets } = graph.dependencies;
  const exact = new Array<bigint | undefined>(sequence.length).fill(undefined);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    if ((sums[node] as number) <= Number.MAX_SAFE_INTEGER) continue;
    const end = offsets[node + 1] as number;
    let short = 1;
    let long = 0n;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependency = targets[n] as number;
      const part = exact[dependency];
      if (part !== undefined) {
        long = long === 0n ? part : long + part;
        continue;
      }
      const sum = sums[dependency] as number;
      if (sum > SHORT_MAX) {
        long += BigInt(sum);
        continue;
      }
      short += sum;
      if (short > SHORT_MAX) {
        long += BigInt(short);
        short = 0;
      }
    }
    exact[node] = long + BigInt(short);
  }
  return exact;
}
