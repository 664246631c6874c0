/** The counters of a scheduler of Dask from its start on, for those who look at it from Python and in dumps. */
import { entriesOf, type Fields, isFields, toNumber } from './wire/codec.ts';
import type { DaskContext, DaskExtension } from './context.ts';

/** Changes of the number of threads that are kept, the newest at least. */
const THREAD_CHANGES_MAX = 10_000;

/** Counts from the start of the process on; a journal does not keep it. */
export class Tallies {
  /** Transitions that were executed. */
  transitionCount = 0;
  private readonly changes: (readonly [atS: number, threads: number])[] = [];
  private readonly sums = new Map<string, { readonly name: unknown; sum: number }>();

  /** The changes of the number of threads in the cluster, in seconds since 1970; the oldest first. */
  get threadHistory(): readonly (readonly [atS: number, threads: number])[] {
    return this.changes.slice(-THREAD_CHANGES_MAX);
  }

  /** Sums of what workers measured, by their names for it. */
  get workerMetrics(): ReadonlyMap<unknown, number> {
    return new Map(Array.from(this.sums.values(), ({ name, sum }) => [name, sum]));
  }

  threadsChanged(atS: number, threads: number): void {
    this.changes.push([atS, threads]);
    if (this.changes.length > 2 * THREAD_CHANGES_MAX) this.changes.splice(0, THREAD_CHANGES_MAX);
  }

  /** @param report - a registration or heartbeat: what was measured since the one before it counts */
  addMetrics({ metrics }: Fields): void {
    if (!isFields(metrics)) return;
    for (const [name, value] of entriesOf(metrics['digests_total_since_heartbeat'])) {
      const amount = toNumber(value);
      if (amount === undefined) continue;
      const id = `${typeof name} ${String(name)}`;
      const known = this.sums.get(id);
      if (known === undefined) this.sums.set(id, { name, sum: amount });
      else known.sum += amount;
    }
  }
}

/** Counting as a part of the adapter. */
export function makeTallies(context: DaskContext): DaskExtension {
  const { tallies, cluster } = context;
  const countThreads = (): void => tallies.threadsChanged(context.nowS(), cluster.totalThreads);
  tallies.threadsChanged(context.nowS(), 0);
  return {
    hooks: {
      taskTransition: () => {
        tallies.transitionCount++;
      },
      workerAdded: countThreads,
      workerRemoved: countThreads,
    },
    workerJoined: ({ registration }) => tallies.addMetrics(registration),
  };
}
