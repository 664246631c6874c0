import { type GraphIndex, rowLength, type Rows, type Totals } from './graph-index.ts';
import type { ConnectedEnds } from './leaf-groups.ts';

/** Up to here rows are sorted by insertion. */
const FEW = 12;

/** The criteria by which nodes are compared; the first that differs decides. */
interface SortKeyColumns {
  readonly graph: GraphIndex;
  readonly totals: Totals;
  readonly roots: ConnectedEnds;
  /** The most dependents that any root of a node has. */
  readonly maxDependents: Int32Array;
}

/**
 * The value of a node for Dask's order, ascending: total dependencies, dependencies, connected
 * roots, dependents of these (more of them is less), name. Never 0 for two nodes with different names.
 */
export class SortKeys {
  private readonly names: readonly string[];
  private readonly dependencies: Rows;
  private readonly totals: Totals;
  private readonly rootCounts: Int32Array;
  private readonly maxDependents: Int32Array;

  constructor({ graph, totals, roots, maxDependents }: SortKeyColumns) {
    this.names = graph.names;
    this.dependencies = graph.dependencies;
    this.totals = totals;
    this.rootCounts = roots.sizes;
    this.maxDependents = maxDependents;
  }

  compare(a: number, b: number): number {
    const numbers = this.compareNumbers(a, b);
    if (numbers !== 0) return numbers;
    const left = this.names[a] as string;
    const right = this.names[b] as string;
    return left < right ? -1 : left > right ? 1 : 0;
  }

  /** Sorts a part of a list of nodes, ascending. */
  sort(nodes: Int32Array, start: number, end: number): void {
    if (end - start <= FEW) {
      this.insertionSort(nodes, start, end);
      return;
    }
    if (!this.isUniform(nodes, start, end)) {
      nodes.subarray(start, end).sort((a, b) => this.compareNumbers(a, b));
    }
    let first = start;
    for (let n = start + 1; n <= end; n++) {
      const isTie =
        n < end && this.compareNumbers(nodes[first] as number, nodes[n] as number) === 0;
      if (isTie) continue;
      if (n - first > 1) sortByName(nodes, first, n, this.names);
      first = n;
    }
  }

  private compareNumbers(a: number, b: number): number {
    const totals = this.totals.compare(a, b);
    if (totals !== 0) return totals;
    const dependencies = rowLength(this.dependencies, a) - rowLength(this.dependencies, b);
    if (dependencies !== 0) return dependencies;
    const roots = (this.rootCounts[a] as number) - (this.rootCounts[b] as number);
    if (roots !== 0) return roots;
    return (this.maxDependents[b] as number) - (this.maxDependents[a] as number);
  }

  private isUniform(nodes: Int32Array, start: number, end: number): boolean {
    const first = nodes[start] as number;
    for (let n = start + 1; n < end; n++) {
      if (this.compareNumbers(first, nodes[n] as number) !== 0) return false;
    }
    return true;
  }

  private insertionSort(nodes: Int32Array, start: number, end: number): void {
    for (let n = start + 1; n < end; n++) {
      const node = nodes[n] as number;
      let at = n;
      while (at > start && this.compare(nodes[at - 1] as number, node) > 0) {
        nodes[at] = nodes[at - 1] as number;
        at--;
      }
      nodes[at] = node;
    }
  }
}

/** For each node the most dependents that any of its roots has. O(nodes + links). */
export function maxDependentsOfRoots(graph: GraphIndex, sequence: Int32Array): Int32Array {
  const { dependencies, dependents } = graph;
  const { offsets, targets } = dependencies;
  const most = new Int32Array(sequence.length);
  for (let at = 0; at < sequence.length; at++) {
    const node = sequence[at] as number;
    const end = offsets[node + 1] as number;
    let start = offsets[node] as number;
    let largest = start === end ? rowLength(dependents, node) : 0;
    for (; start < end; start++) {
      largest = Math.max(largest, most[targets[start] as number] as number);
    }
    most[node] = largest;
  }
  return most;
}

/** Rows of a graph whose nodes are sorted when a row is first looked at. */
export class SortedRows {
  private readonly isSorted: Uint8Array;

  /** @param rows - is sorted in place */
  constructor(
    readonly rows: Rows,
    private readonly keys: SortKeys,
    nodeCount: number,
  ) {
    this.isSorted = new Uint8Array(nodeCount);
  }

  /** Sorts a row unless that has been done. */
  sort(node: number): void {
    if (this.isSorted[node] === 1) return;
    this.isSorted[node] = 1;
    const { offsets, targets } = this.rows;
    this.keys.sort(targets, offsets[node] as number, offsets[node + 1] as number);
  }
}

/** Below this many names comparing them pair by pair is faster. */
const FEW_NAMES = 24;

/** Bits of a positive double below the exponent of infinity; as many fit for characters and index. */
const WORD_BITS = 62;
const CHARACTER_BITS = 7;

/**
 * Sorts a part of a list of nodes by their names, by UTF-16 code units.
 *
 * Names of tasks are long, begin alike and differ late, which is slow to compare. So the beginning that
 * all share is skipped, the next characters and the position are packed into one double each, and these
 * are sorted natively. What is still equal is sorted in the same way by the characters after these.
 */
export function sortByName(
  nodes: Int32Array,
  start: number,
  end: number,
  names: readonly string[],
): void {
  sortFrom({ nodes, names }, start, end, 0);
}

interface Subject {
  readonly nodes: Int32Array;
  readonly names: readonly string[];
}

function sortFrom(subject: Subject, start: number, end: number, known: number): void {
  const { nodes, names } = subject;
  const count = end - start;
  if (count < FEW_NAMES) {
    insertionSort(nodes, start, end, names);
    return;
  }
  const skip = sharedLength(subject, start, end, known);
  const indexBits = 32 - Math.clz32(count - 1);
  const width = Math.floor((WORD_BITS - indexBits) / CHARACTER_BITS);
  const window = { skip, width, indexBits };
  const words = new Float64Array(count);
  if (!pack(subject, start, words, window)) {
    const sorted = Array.from(nodes.subarray(start, end)).sort((a, b) => {
      const left = names[a] as string;
      const right = names[b] as string;
      return left < right ? -1 : left > right ? 1 : 0;
    });
    nodes.set(sorted, start);
    return;
  }
  words.sort();
  unpack(nodes, start, words, indexBits);
  sortTies(subject, start, words, window);
}

/** Length of the beginning that all names share; never beyond the end of the shortest. */
function sharedLength(
  { nodes, names }: Subject,
  start: number,
  end: number,
  known: number,
): number {
  const first = names[nodes[start] as number] as string;
  let shared = first.length;
  for (let n = start + 1; n < end && shared > known; n++) {
    const name = names[nodes[n] as number] as string;
    if (name.length < shared) shared = name.length;
    let at = known;
    while (at < shared && name.charCodeAt(at) === first.charCodeAt(at)) at++;
    shared = at;
  }
  return shared;
}

interface Window {
  /** Characters before the first that counts. */
  readonly skip: number;
  /** Characters that count. */
  readonly width: number;
  /** Bits of the position in the list, the lowest of a word. */
  readonly indexBits: number;
}

/**
 * Writes a word for each name. Returns whether all characters in the window fit; the end of a name
 * counts as zeros, so zero itself does not.
 */
function pack(subject: Subject, start: number, words: Float64Array, window: Window): boolean {
  const { nodes, names } = subject;
  const { skip, width, indexBits } = window;
  const halves = new Uint32Array(words.buffer);
  const base = 2 ** CHARACTER_BITS;
  const split = 2 ** (32 - indexBits);
  for (let n = 0; n < words.length; n++) {
    const name = names[nodes[start + n] as number] as string;
    const length = Math.min(skip + width, name.length);
    // Multiplied, not shifted: these are more than 32 bits.
    let characters = 0;
    for (let at = skip; at < length; at++) {
      const code = name.charCodeAt(at);
      if (code === 0 || code >= base) return false;
      characters = characters * base + code;
    }
    for (let at = Math.max(skip, length); at < skip + width; at++) characters *= base;
    const high = Math.floor(characters / split);
    halves[2 * n + HIGH] = high;
    halves[2 * n + LOW] = (characters - high * split) * 2 ** indexBits + n;
  }
  return true;
}

function unpack(nodes: Int32Array, start: number, words: Float64Array, indexBits: number): void {
  const halves = new Uint32Array(words.buffer);
  const before = nodes.slice(start, start + words.length);
  const mask = 2 ** indexBits - 1;
  for (let n = 0; n < words.length; n++) {
    nodes[start + n] = before[(halves[2 * n + LOW] as number) & mask] as number;
  }
}

/** Sorts what has the same characters in the window by those behind it. */
function sortTies(subject: Subject, start: number, words: Float64Array, window: Window): void {
  const halves = new Uint32Array(words.buffer);
  const { indexBits } = window;
  const next = window.skip + window.width;
  let first = 0;
  for (let n = 1; n <= words.length; n++) {
    const isTie =
      n < words.length &&
      halves[2 * n + HIGH] === halves[2 * first + HIGH] &&
      (halves[2 * n + LOW] as number) >>> indexBits ===
        (halves[2 * first + LOW] as number) >>> indexBits;
    if (isTie) continue;
    const name = subject.names[subject.nodes[start + first] as number] as string;
    // Names that end inside the window are the same.
    if (n - first > 1 && name.length > next) sortFrom(subject, start + first, start + n, next);
    first = n;
  }
}

function insertionSort(
  nodes: Int32Array,
  start: number,
  end: number,
  names: readonly string[],
): void {
  for (let n = start + 1; n < end; n++) {
    const node = nodes[n] as number;
    const name = names[node] as string;
    let at = n;
    while (at > start && (names[nodes[at - 1] as number] as string) > name) {
      nodes[at] = nodes[at - 1] as number;
      at--;
    }
    nodes[at] = node;
  }
}

/** Which half of a double is which, in numbers of 32 bits. */
const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;
