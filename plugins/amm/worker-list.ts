import type { FewMembers, WorkerView } from '../../core/api/index.ts';

/** From so many members on, they are searched by hash. */
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

  /** One that is new. Not for lists that several share: {@link NOBODY}, and those of one worker. */
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

/** Nobody. There is one. */
export const NOBODY = new WorkerList([]);
