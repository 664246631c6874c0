import type { ClusterView, WorkerMetrics, WorkerView } from '../../core/api/index.ts';
import type { BandwidthsAnswer } from './page-messages.ts';

/** The weight of a new measurement. Dask: the same. */
const WEIGHT = 0.1;

/** Pairs of workers that are listed, the slowest. */
const LISTED = 100;

interface Receiver {
  readonly name: string;
  /** The metrics that were read last. */
  read?: WorkerMetrics;
  /** Bandwidth from others, by their addresses. */
  readonly from: Map<string, number>;
}

/** Learns the bandwidth between workers, and of each type of result, from what workers tell of large transfers. */
export class Bandwidths {
  /** By addresses. */
  private workers = new Map<string, Receiver>();
  private readonly types = new Map<string, number>();

  /** @param keepsGone - workers that have left stay in the answer, as in what is told of a time that is over */
  constructor(private readonly keepsGone = false) {}

  /** To be called more often than workers send their metrics. O(workers). */
  read({ workers }: ClusterView): void {
    const known = this.workers;
    if (!this.keepsGone) this.workers = new Map();
    for (const worker of workers.values()) this.readWorker(worker, known.get(worker.address));
    for (const address of known.keys()) {
      if (this.workers.has(address)) continue;
      for (const { from } of this.workers.values()) from.delete(address);
    }
  }

  /** To be called after each heartbeat of the worker, in the place of {@link read}. O(transfers). */
  readWorker(
    { address, name, metrics }: WorkerView,
    to: Receiver = this.workers.get(address) ?? { name, from: new Map() },
  ): void {
    this.workers.set(address, to);
    if (to.read === metrics) return;
    to.read = metrics;
    for (const { from, type = '', bandwidth } of metrics.transfers ?? []) {
      const means = from === undefined ? this.types : to.from;
      const of = from ?? type;
      const mean = means.get(of) ?? bandwidth;
      means.set(of, mean + WEIGHT * (bandwidth - mean));
    }
  }

  /** Each in the order of its bandwidth, the least first. O(pairs log pairs). */
  answer(): BandwidthsAnswer {
    const bySpeed = <Row extends { readonly bandwidth: number }>(rows: readonly Row[]): Row[] =>
      rows.toSorted((a, b) => a.bandwidth - b.bandwidth).slice(0, LISTED);
    const pairs = [...this.workers].flatMap(([to, { name: toName, from: sources }]) =>
      [...sources].flatMap(([from, bandwidth]) => {
        const fromName = this.workers.get(from)?.name;
        return fromName === undefined ? [] : [{ from, fromName, to, toName, bandwidth }];
      }),
    );
    const types = Array.from(this.types, ([type, bandwidth]) => ({ type, bandwidth }));
    return { pairs: bySpeed(pairs), types: bySpeed(types) };
  }
}
