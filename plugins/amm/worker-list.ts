import type { FewMembers, WorkerView } from '../../core/api/index.ts';

/** Lists of at least this many members are searched by hash. */
const HASHED_FROM = 16;

/** A set of workers in the order in which they were added: few as a rule. */
export class WorkerList implements FewMembers<WorkerView> {
  private hashed: Set<WorkerView> | undefined;

  constructor(private readonly list: WorkerView[]) {}

  get items(): readonly WorkerView[] {
    return this.list;
  }

  get size(): number {
    return this.list.length;
  }

  /**
   * Adds a new member. Must not be called on shared lists: {@link NO_WORKERS}, and those of one worker.
   */
  add(worker: WorkerView): void {
    this.list.push(worker);
    this.hashed?.add(worker);
  }

  has(worker: WorkerView): boolean {
    const { list } = this;
    if (list.length < HASHED_FROM) return list.includes(worker);
    this.hashed ??= new Set(list);
    return this.hashed.has(worker);
  }

  [Symbol.iterator](): Iterator<WorkerView> {
    return this.list[Symbol.iterator]();
  }
}

/** The shared empty list. */
export const NO_WORKERS = new WorkerList([]);
