/** A member of a {@link PlaceList}. */
interface Placed {
  /** Index in the list that owns it, or -1. */
  place: number;
}

/** Gaps that are not worth closing. */
const GAPS_MAX = 8;
/** Upper bound of the capacity that is kept, as a multiple of the entries in use. */
const ROOM_MAX = 8;

/**
 * Tasks in the order in which they were added, as a dense list in which each task knows its place, so
 * that nothing has to be hashed. Adding and deleting are O(1) on average.
 */
class PlaceList<Task extends Placed> implements Iterable<Task> {
  /**
   * With gaps where tasks have left, and spare capacity behind the end: an array that is shortened
   * gives up its capacity, and has to allocate it again for the next task.
   */
  private readonly places: (Task | undefined)[] = [];
  private end = 0;
  private count = 0;

  get size(): number {
    return this.count;
  }

  has(task: Task): boolean {
    return this.isAt(this.placeOf(task), task);
  }

  /** The task must not be here. */
  add(task: Task): void {
    const { places, end } = this;
    this.addPlace(task, end);
    if (end === places.length) places.push(task);
    else places[end] = task;
    this.end++;
    this.count++;
  }

  /** Returns false when the task is not here. */
  delete(task: Task): boolean {
    const place = this.placeOf(task);
    if (!this.isAt(place, task)) return false;
    this.places[place] = undefined;
    if (place === this.end - 1) this.end--;
    this.clearPlace(task);
    this.count--;
    if (this.end > 2 * this.count + GAPS_MAX) this.closeGaps();
    return true;
  }

  /** Forgets all members, whatever place they think that they have. */
  clear(): void {
    this.places.length = 0;
    this.end = 0;
    this.count = 0;
  }

  *[Symbol.iterator](): IterableIterator<Task> {
    for (const task of this.places) if (task !== undefined) yield task;
  }

  protected placeOf(task: Task): number {
    return task.place;
  }

  protected addPlace(task: Task, place: number): void {
    task.place = place;
  }

  protected movePlace(task: Task, place: number): void {
    task.place = place;
  }

  protected clearPlace(task: Task): void {
    task.place = -1;
  }

  /** Checks for negative indices, which an array would look up as property names. */
  private isAt(place: number, task: Task): boolean {
    return place >= 0 && place < this.end && this.places[place] === task;
  }

  private closeGaps(): void {
    const { places, end } = this;
    let next = 0;
    for (let place = 0; place < end; place++) {
      const task = places[place];
      if (task === undefined) continue;
      if (place !== next) {
        places[place] = undefined;
        places[next] = task;
        this.movePlace(task, next);
      }
      next++;
    }
    this.end = next;
    if (places.length > ROOM_MAX * (next + GAPS_MAX)) places.length = next;
  }
}

/** What a worker is processing. A task processes on one worker at a time, and keeps its place itself. */
export class ProcessingList<Task extends Placed> extends PlaceList<Task> {}

/**
 * What a worker holds. Most results have one holder, and the task keeps its place there itself; the
 * places of further copies are in a table of the worker.
 */
export class ReplicaList<Task extends Placed> extends PlaceList<Task> {
  private copies: Map<Task, number> | undefined = undefined;

  override clear(): void {
    super.clear();
    this.copies = undefined;
  }

  protected override placeOf(task: Task): number {
    // The table first: by chance a further copy may be where the first one is on its worker.
    return this.copies?.get(task) ?? task.place;
  }

  protected override addPlace(task: Task, place: number): void {
    if (task.place >= 0) (this.copies ??= new Map()).set(task, place);
    else task.place = place;
  }

  protected override movePlace(task: Task, place: number): void {
    if (this.copies?.has(task) === true) this.copies.set(task, place);
    else task.place = place;
  }

  protected override clearPlace(task: Task): void {
    const { copies } = this;
    if (copies?.delete(task) !== true) task.place = -1;
    else if (copies.size === 0) this.copies = undefined;
  }
}
