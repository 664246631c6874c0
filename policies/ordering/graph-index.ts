import { type GraphLinks, type GraphTask, YardmasterError } from '../../core/api/index.ts';

/** Rows of node numbers, all in one array: row `n` is `targets[offsets[n]]` to `targets[offsets[n + 1]]`. */
export interface Rows {
  readonly offsets: Int32Array;
  readonly targets: Int32Array;
}

/**
 * A graph with numbers for keys. Nodes below {@link taskCount} are the tasks in the order in which they
 * were given; those from there on are keys that tasks depend on without being in the graph.
 */
export interface GraphIndex {
  readonly taskCount: number;
  /** Tasks and keys outside of the graph. */
  readonly nodeCount: number;
  /** Key of each node. */
  readonly names: readonly string[];
  /** The dependencies of each node, every node once. */
  readonly dependencies: Rows;
  /** The dependents of each node. */
  readonly dependents: Rows;
  /** Node of a task, or -1. */
  positionOf(key: string): number;
}

/**
 * Numbers the keys of a graph. O(tasks + dependencies); without links that includes a look-up of a key
 * for each.
 */
export function indexGraph(
  tasks: readonly GraphTask[],
  links: GraphLinks = resolveLinks(tasks),
): GraphIndex {
  const taskCount = tasks.length;
  const names = new Array<string>(taskCount);
  for (let index = 0; index < taskCount; index++) names[index] = (tasks[index] as GraphTask).key;
  const nodeOutside = new Map<string, number>();
  const targets = new Int32Array(links.targets.length);
  const offsets = new Int32Array(taskCount + targets.length + 1);
  // Task in whose row a node was seen last: what is given twice counts once.
  const seenIn = new Int32Array(taskCount + targets.length).fill(-1);
  let used = 0;
  for (let index = 0; index < taskCount; index++) {
    offsets[index] = used;
    const start = links.offsets[index] as number;
    const end = links.offsets[index + 1] as number;
    for (let n = start; n < end; n++) {
      let node = links.targets[n] as number;
      if (node < 0) {
        const key = (tasks[index] as GraphTask).dependencies[n - start] as string;
        node = nodeOutside.get(key) ?? names.length;
        if (node === names.length) names.push(key);
        nodeOutside.set(key, node);
      }
      if (seenIn[node] === index) continue;
      seenIn[node] = index;
      targets[used++] = node;
    }
  }
  const nodeCount = names.length;
  offsets.fill(used, taskCount, nodeCount + 1);
  const dependencies = {
    offsets: offsets.subarray(0, nodeCount + 1),
    targets: targets.subarray(0, used),
  };
  return {
    taskCount,
    nodeCount,
    names,
    dependencies,
    dependents: reverseRows(dependencies, nodeCount),
    positionOf: (key) => links.positionOf(key),
  };
}

/** Looks all keys of a graph up, for callers that have not done so. */
export function resolveLinks(tasks: readonly GraphTask[]): GraphLinks {
  const positions = new Map<string, number>();
  const offsets = new Int32Array(tasks.length + 1);
  let count = 0;
  for (let index = 0; index < tasks.length; index++) {
    const { key, dependencies } = tasks[index] as GraphTask;
    positions.set(key, index);
    count += dependencies.length;
    offsets[index + 1] = count;
  }
  const positionOf = (key: string): number => positions.get(key) ?? -1;
  const targets = new Int32Array(count);
  for (let index = 0, n = 0; index < tasks.length; index++) {
    const { dependencies } = tasks[index] as GraphTask;
    for (let m = 0; m < dependencies.length; m++)
      targets[n++] = positionOf(dependencies[m] as string);
  }
  return { offsets, targets, positionOf };
}

/** The same links seen from the other end; each row ascends. O(nodes + links). */
export function reverseRows({ offsets, targets }: Rows, nodeCount: number): Rows {
  const reversedOffsets = new Int32Array(nodeCount + 1);
  for (let n = 0; n < targets.length; n++) {
    const target = targets[n] as number;
    reversedOffsets[target + 1] = (reversedOffsets[target + 1] as number) + 1;
  }
  for (let node = 0; node < nodeCount; node++) {
    reversedOffsets[node + 1] =
      (reversedOffsets[node + 1] as number) + (reversedOffsets[node] as number);
  }
  const cursor = reversedOffsets.slice(0, nodeCount);
  const reversed = new Int32Array(targets.length);
  for (let node = 0; node < nodeCount; node++) {
    const end = offsets[node + 1] as number;
    for (let n = offsets[node] as number; n < end; n++) {
      const target = targets[n] as number;
      const position = cursor[target] as number;
      reversed[position] = node;
      cursor[target] = position + 1;
    }
  }
  return { offsets: reversedOffsets, targets: reversed };
}

/** The number of nodes in the row of a node. */
export function rowLength({ offsets }: Rows, node: number): number {
  return (offsets[node + 1] as number) - (offsets[node] as number);
}

/** Visits what is in the row of a node, in the order of the row. */
export function eachInRow(
  { offsets, targets }: Rows,
  node: number,
  visit: (target: number) => void,
): void {
  const end = offsets[node + 1] as number;
  for (let n = offsets[node] as number; n < end; n++) visit(targets[n] as number);
}

/** Visits each dependency that is a task of the graph itself, with the task that needs it. */
export function eachLink(
  { taskCount, dependencies }: GraphIndex,
  visit: (task: number, dependency: number) => void,
): void {
  for (let task = 0; task < taskCount; task++) {
    eachInRow(dependencies, task, (dependency) => {
      if (dependency < taskCount) visit(task, dependency);
    });
  }
}

/**
 * All nodes, dependencies before their dependents.
 * @throws YardmasterError `ERR_GRAPH_CYCLE` naming the keys of a cycle
 */
export function topologicalOrder(graph: GraphIndex): Int32Array {
  const { nodeCount, dependencies, dependents } = graph;
  const missing = new Int32Array(nodeCount);
  const sequence = new Int32Array(nodeCount);
  let length = 0;
  for (let node = 0; node < nodeCount; node++) {
    const count = rowLength(dependencies, node);
    missing[node] = count;
    if (count === 0) sequence[length++] = node;
  }
  const { offsets, targets } = dependents;
  for (let at = 0; at < length; at++) {
    const node = sequence[at] as number;
    const end = offsets[node + 1] as number;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependent = targets[n] as number;
      const left = (missing[dependent] as number) - 1;
      missing[dependent] = left;
      if (left === 0) sequence[length++] = dependent;
    }
  }
  if (length < nodeCount) throw cycleError(graph, missing);
  return sequence;
}

/** Walks from any node that is never complete to a dependency of the same kind until one repeats. */
function cycleError(graph: GraphIndex, missing: Int32Array): YardmasterError {
  const { offsets, targets } = graph.dependencies;
  const positions = new Map<number, number>();
  const path: number[] = [];
  let node = missing.findIndex((count) => count > 0);
  while (!positions.has(node)) {
    positions.set(node, path.length);
    path.push(node);
    const row = targets.subarray(offsets[node], offsets[node + 1]);
    node = row.find((dependency) => (missing[dependency] as number) > 0) as number;
  }
  const loop = [...path.slice(positions.get(node)), node];
  const cycle = loop.map((member) => graph.names[member] as string);
  return new YardmasterError(
    'ERR_GRAPH_CYCLE',
    `the graph has a cycle: ${cycle.join(' -> ')}. Each of these depends on the next; break one link.`,
    { cycle },
  );
}

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
