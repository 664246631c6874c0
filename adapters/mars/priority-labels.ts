import { YardmasterError } from '../../core/api/index.ts';

/** What Mars orders subtasks by: compared from the front, the largest runs first. */
export type PriorityTuple = readonly number[];

/** A tuple in use, with the number that stands for it. */
export interface PriorityLabel {
  readonly tuple: PriorityTuple;
  /**
   * Larger for larger tuples. Changes when labels are moved apart: see {@link
   * PriorityLabels.acquire}.
   */
  readonly value: number;
}

class Label implements PriorityLabel {
  uses = 0;
  /** From 1 to {@link PLACES} - 1 while there are more elements than one; NaN while it has none. */
  place = NaN;

  constructor(readonly tuple: PriorityTuple) {
    if (tuple.length === 1) this.place = 0;
  }

  get first(): number {
    return this.tuple[0] as number;
  }

  get value(): number {
    return this.first + this.place / PLACES;
  }
}

/** Places between two whole numbers. With {@link FIRST_MAX} every sum is exact. */
const PLACES = 2 ** 32;
const FIRST_MAX = 2 ** 20;
/** Distance at an open end, so that many more labels fit there. */
const STRIDE = 2 ** 16;
/** Labels that are put into their places one by one; more are sorted in. */
const SINGLES_MAX = 32;

/**
 * Numbers for tuples of numbers, so that a scheduler which orders by one number follows the order
 * of the tuples exactly. A tuple of one element is its own number, which makes it comparable with
 * other priorities. Longer tuples lie between two whole numbers, and are moved together when no
 * free number is left.
 */
export class PriorityLabels {
  private readonly known = new Map<string, Label>();
  /** By first element; ascending. */
  private readonly buckets = new Map<number, Label[]>();

  /** Tuples in use. */
  get size(): number {
    return this.known.size;
  }

  /**
   * Takes a label for each tuple; equal ones share it. O(log n + places moved) for a few.
   *
   * @returns the labels, and all others whose number has changed, so that the caller can update
   *   their users
   * @throws YardmasterError `ERR_GRAPH_INVALID` when a tuple cannot be ordered
   */
  acquire(tuples: readonly PriorityTuple[]): {
    readonly labels: readonly PriorityLabel[];
    readonly moved: ReadonlySet<PriorityLabel>;
  } {
    for (const tuple of tuples) checkTuple(tuple);
    const fresh = new Map<number, Label[]>();
    const labels = tuples.map((tuple) => this.labelFor(tuple, fresh));
    const moved = new Set<PriorityLabel>();
    for (const [first, added] of fresh) this.place(first, added, moved);
    return { labels, moved };
  }

  /** Gives one use of a label back. */
  release(label: PriorityLabel): void {
    const own = this.known.get(keyOf(label.tuple));
    if (own !== label || --own.uses > 0) return;
    this.known.delete(keyOf(own.tuple));
    const bucket = this.buckets.get(own.first) ?? [];
    bucket.splice(positionOf(bucket, own.tuple), 1);
    if (bucket.length === 0) this.buckets.delete(own.first);
  }

  private labelFor(tuple: PriorityTuple, fresh: Map<number, Label[]>): Label {
    const key = keyOf(tuple);
    let label = this.known.get(key);
    if (label === undefined) {
      label = new Label([...tuple]);
      this.known.set(key, label);
      const added = fresh.get(label.first);
      if (added === undefined) fresh.set(label.first, [label]);
      else added.push(label);
    }
    label.uses++;
    return label;
  }

  private place(first: number, added: readonly Label[], moved: Set<PriorityLabel>): void {
    const bucket = this.buckets.get(first) ?? [];
    this.buckets.set(first, bucket);
    let isPlaced: boolean;
    if (added.length <= SINGLES_MAX) {
      isPlaced = added.map((label) => placeOne(bucket, label)).every(Boolean);
    } else {
      for (const label of added) bucket.push(label);
      bucket.sort((a, b) => compareTuples(a.tuple, b.tuple));
      isPlaced = placeRuns(bucket);
    }
    if (isPlaced) return;
    const isNew = new Set(added);
    spread(bucket);
    for (const label of bucket) if (!isNew.has(label) && label.tuple.length > 1) moved.add(label);
  }
}

/** Like tuples in Python: the first difference decides, else the shorter one is smaller. */
export function compareTuples(a: PriorityTuple, b: PriorityTuple): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const difference = (a[index] as number) - (b[index] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Inserts a label in order. Returns false when no number is free for it. */
function placeOne(bucket: Label[], label: Label): boolean {
  const at = positionOf(bucket, label.tuple);
  bucket.splice(at, 0, label);
  return placeRun(bucket, at, at + 1);
}

/**
 * Gives a number to all labels without one. Returns false when no number is free for one of them.
 */
function placeRuns(bucket: readonly Label[]): boolean {
  for (let start = 0; start < bucket.length; start++) {
    let end = start;
    while (Number.isNaN(bucket[end]?.place)) end++;
    if (end > start && !placeRun(bucket, start, end)) return false;
    start = end;
  }
  return true;
}

/** Between the neighbours; at an open end a stride apart, and the first ones in the middle. */
function placeRun(bucket: readonly Label[], start: number, end: number): boolean {
  if (end - start === 1 && !Number.isNaN(bucket[start]?.place)) return true;
  const low = bucket[start - 1]?.place ?? 0;
  const high = bucket[end]?.place ?? PLACES;
  if (Number.isNaN(low) || Number.isNaN(high)) return false;
  const even = Math.floor((high - low) / (end - start + 1));
  if (even < 1) return false;
  const isFirst = low === 0 && high === PLACES;
  const step = low === 0 || high === PLACES ? Math.min(even, STRIDE) : even;
  const width = step * (end - start + 1);
  const origin = isFirst ? (PLACES - width) / 2 : low === 0 ? high - width : low;
  for (let index = start; index < end; index++) {
    (bucket[index] as Label).place = Math.floor(origin) + step * (index - start + 1);
  }
  return true;
}

/** Makes space by distributing all labels evenly over the middle half. */
function spread(bucket: readonly Label[]): void {
  const long = bucket.filter(({ tuple }) => tuple.length > 1);
  const step = Math.floor(PLACES / 2 / (long.length + 1));
  long.forEach((label, index) => (label.place = PLACES / 4 + step * (index + 1)));
}

/** Where the tuple is, or would be. */
function positionOf(bucket: readonly Label[], tuple: PriorityTuple): number {
  let [low, high] = [0, bucket.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareTuples((bucket[middle] as Label).tuple, tuple) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function keyOf(tuple: PriorityTuple): string {
  // Not -0, which is 0.
  return tuple.map((element) => element + 0).join();
}

function checkTuple(tuple: PriorityTuple): void {
  if (tuple.length === 0 || !tuple.every((element) => Number.isFinite(element))) {
    refuse(tuple, 'must be a finite number, or a list of such');
  }
  const [first = 0] = tuple;
  if (tuple.length > 1 && !(Number.isInteger(first) && Math.abs(first) <= FIRST_MAX)) {
    refuse(tuple, `of several numbers must begin with a whole one of at most ${FIRST_MAX}`);
  }
}

function refuse(tuple: PriorityTuple, what: string): never {
  throw new YardmasterError('ERR_GRAPH_INVALID', `a priority ${what}, got [${tuple.join(', ')}]`, {
    priority: tuple,
  });
}
