import type { FewMembers, PendingReplicas, TaskView, WorkerView } from '../../core/api/index.ts';

/** From so many members on, a set is searched by hash. */
const HASHED_FROM = 16;
const NONE: readonly WorkerView[] = [];

/** Workers in the order in which they were chosen: few as a rule, but all of a cluster at times. */
class Choices implements FewMembers<WorkerView> {
  private list: WorkerView[] | undefined;
  private hashed: Set<WorkerView> | undefined;

  get items(): readonly WorkerView[] {
    return this.list ?? NONE;
  }

  get size(): number {
    return this.items.length;
  }

  has(worker: WorkerView): boolean {
    return this.hashed?.has(worker) ?? this.items.includes(worker);
  }

  add(worker: WorkerView): void {
    if (this.list === undefined) this.list = [worker];
    else this.list.push(worker);
    if (this.hashed !== undefined) this.hashed.add(worker);
    else if (this.list.length >= HASHED_FROM) this.hashed = new Set(this.list);
  }

  [Symbol.iterator](): Iterator<WorkerView> {
    return this.items[Symbol.iterator]();
  }
}

/** What a round has in store for one task. */
export class Pending implements PendingReplicas {
  /** Will receive a copy; requests of earlier rounds that are under way are among them. */
  readonly replicate = new Choices();
  /** Will lose their copy. */
  readonly drop = new Choices();
}

/** What a round has in store, by task. */
export type PendingTable = Map<TaskView, Pending>;
