import type { ClusterView, WorkerView } from '../../core/api/index.ts';
import type { MemorySample } from './history.ts';

/** More samples are not drawn; beyond that every other one is dropped. */
const SAMPLES_MAX = 600;

/** Workers whose processes are followed one by one. */
const FOLLOWED_MAX = 64;

/** The memory of workers over time, in a bounded number of samples. */
export class MemoryTrack {
  private kept: MemorySample[] = [];
  /** Seconds between two samples that are kept. */
  private stepS = 0;

  get samples(): readonly MemorySample[] {
    return this.kept;
  }

  /** O(workers), and nothing when the last sample is recent. */
  sample(
    { workers }: ClusterView,
    atS: number,
    numberOf: (worker: WorkerView) => number | undefined,
  ): void {
    const last = this.kept.at(-1);
    if (last !== undefined && atS - last.atS < this.stepS) return;
    const processes: (readonly [number, number])[] = [];
    let [managedBytes, unmanagedBytes, spilledBytes] = [0, 0, 0];
    for (const worker of workers.values()) {
      const { managed, process, spilled } = worker.memory;
      managedBytes += managed;
      unmanagedBytes += Math.max(0, process - managed);
      spilledBytes += spilled;
      const number = numberOf(worker);
      if (number !== undefined && number < FOLLOWED_MAX) processes.push([number, process]);
    }
    this.kept.push({ atS, managedBytes, unmanagedBytes, spilledBytes, processes });
    if (this.kept.length > SAMPLES_MAX) this.thin(atS);
  }

  private thin(atS: number): void {
    const first = this.kept[0]?.atS ?? atS;
    this.stepS = (2 * (atS - first)) / SAMPLES_MAX;
    this.kept = this.kept.filter((_, index) => index % 2 === 0);
  }
}
