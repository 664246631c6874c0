import type { ClusterView, WorkerMetrics } from '../../core/api/index.ts';
import type { BandwidthsAnswer } from './page-messages.ts';

/** The weight of a new measurement. Dask: the same. */
const WEIGHT = 0.1;

/** Pairs of workers that are listed, the slowest. */
const LISTED = 100;

/** Learns the bandwidth between workers, and of each type of result, from what workers tell of large transfers. */
export class Bandwidths {
  /** The metrics of each worker that were read last, and its bandwidth from others, by addresses. */
  private workers = new Map<string, { read?: WorkerMetrics; readonly from: Map<string, number> }>();
  private readonly types = new Map<string, number>();

  /** To be called more often than workers send their metrics. O(workers). */
  read({ workers }: ClusterView): void {
    const known = this.workers;
    this.workers = new Map();
    for (const [address, { metrics }] of workers) {
      const to = known.get(address) ?? { from: new Map<string, number>() };
      this.workers.set(address, to);
      if (to.read === metrics) continue;
      to.read = metrics;
      for (const { from, type = '', bandwidth } of metrics.transfers ?? []) {
        const means = from === undefined ? this.types : to.from;
        const name = from ?? type;
        const mean = means.get(name) ?? bandwidth;
        means.set(name, mean + WEIGHT * (bandwidth - mean));
      }
    }
  }

  /** Each in the order of its bandwidth, the least first. O(pairs log pairs). */
  answer(): BandwidthsAnswer {
    const bySpeed = <Row extends { readonly bandwidth: number }>(rows: readonly Row[]): Row[] =>
      rows.toSorted((a, b) => a.bandwidth - b.bandwidth).slice(0, LISTED);
    const pairs = [...this.workers].flatMap(([to, { from: sources }]) =>
      [...sources].flatMap(([from, bandwidth]) =>
        this.workers.has(from) ? [{ from, to, bandwidth }] : [],
      ),
    );
    const types = Array.from(this.types, ([type, bandwidth]) => ({ type, bandwidth }));
    return { pairs: bySpeed(pairs), types: bySpeed(types) };
  }
}
