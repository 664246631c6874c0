import type { WorkerView } from '../../core/api/index.ts';
import type { WorkerLoads } from './worker-loads.ts';

/** The memory of the workers in a round, as policies see it. Empty between rounds. */
export class WorkersMemory implements ReadonlyMap<WorkerView, number> {
  /** @param loads - of the round; undefined between rounds */
  constructor(private readonly loads: () => WorkerLoads | undefined) {}

  get size(): number {
    return this.loads()?.all.length ?? 0;
  }

  get(worker: WorkerView): number | undefined {
    return this.loads()?.of(worker)?.memory;
  }

  has(worker: WorkerView): boolean {
    return this.get(worker) !== undefined;
  }

  *entries(): MapIterator<[WorkerView, number]> {
    for (const { worker, memory } of this.loads()?.all ?? []) yield [worker, memory];
  }

  *keys(): MapIterator<WorkerView> {
    for (const [worker] of this.entries()) yield worker;
  }

  *values(): MapIterator<number> {
    for (const [, memory] of this.entries()) yield memory;
  }

  forEach(
    callback: (memory: number, worker: WorkerView, map: ReadonlyMap<WorkerView, number>) => void,
  ): void {
    for (const [worker, memory] of this.entries()) callback(memory, worker, this);
  }

  [Symbol.iterator](): MapIterator<[WorkerView, number]> {
    return this.entries();
  }
}
