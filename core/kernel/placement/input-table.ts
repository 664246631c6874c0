import type { WorkerView } from '../../api/views.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { nbytesOf } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { empty } from '../../util/empty.ts';

const NOT_A_HOLDER = -1;

/**
 * Which running workers hold inputs of a task, and how many bytes each worker lacks.
 *
 * One pass over the inputs and their replicas into a reused column: O(dependencies + replicas),
 * however many candidates there are. (Dask sums over all inputs for each candidate.)
 */
export class InputTable {
  /** Ranks of the holders when they were met: workers may move to other ranks afterwards. */
  private readonly ranks: number[] = [];
  /** Running workers that hold at least one input, in the order in which they were met. */
  readonly holders: WorkerState[] = [];
  /** Bytes of the inputs by rank of the worker that holds them. */
  private readonly localBytes: number[] = [];
  private totalBytes = 0;

  /** @param copiesMax - inputs with more copies are left out; they are everywhere */
  locate(cluster: ClusterState, task: TaskState, copiesMax = Infinity): void {
    this.clear();
    while (this.localBytes.length < cluster.workersByRank.length) {
      this.localBytes.push(NOT_A_HOLDER);
    }
    for (const dependency of task.dependencies) {
      if (dependency.whoHas.size > copiesMax) continue;
      const nbytes = nbytesOf(cluster, dependency);
      this.totalBytes += nbytes;
      for (const worker of dependency.whoHas.items) this.credit(worker, nbytes);
    }
  }

  /** Bytes that would have to be fetched to run the task there. Can be handed on without this table. */
  readonly missingBytes = (worker: WorkerView): number =>
    this.totalBytes - Math.max(0, this.localBytes[worker.rank] ?? 0);

  clear(): void {
    for (const rank of this.ranks) this.localBytes[rank] = NOT_A_HOLDER;
    empty(this.ranks);
    empty(this.holders);
    this.totalBytes = 0;
  }

  private credit(worker: WorkerState, nbytes: number): void {
    if (worker.status !== 'running') return;
    const before = this.localBytes[worker.rank] as number;
    if (before === NOT_A_HOLDER) {
      this.holders.push(worker);
      this.ranks.push(worker.rank);
    }
    this.localBytes[worker.rank] = Math.max(0, before) + nbytes;
  }
}
