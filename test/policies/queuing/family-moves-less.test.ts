import { describe, expect, it } from 'vitest';
import type { PolicySlots } from '../../../core/api/policies.ts';
import { family } from '../../../policies/queuing/family.ts';
import { rootish } from '../../../policies/queuing/root-ish.ts';
import { mapReduce, unevenMs } from '../../kit/map-reduce.ts';
import { SimulatedCluster } from '../../kit/simulated-cluster.ts';
import { made } from '../../kit/made.ts';

interface Figures {
  readonly movedMb: number;
  readonly peakTotalMb: number;
  readonly peakWorkerMb: number;
  readonly seconds: number;
}

/** Runs a map-reduce of 1 MB results on real machines in virtual time. */
function simulate(
  queuing: PolicySlots['queuing'],
  [roots, fanIn]: readonly [number, number],
  workers: readonly number[],
): Figures {
  const cluster = new SimulatedCluster({ policies: { queuing }, workers, durationMs: unevenMs });
  const tasks = mapReduce(roots, fanIn);
  cluster.submit(tasks);
  cluster.run();
  expect(new Set(cluster.executed).size).toBe(tasks.length);
  expect(cluster.executed).toHaveLength(tasks.length);
  return {
    movedMb: cluster.movedBytes / 1e6,
    peakTotalMb: cluster.peakTotalBytes / 1e6,
    peakWorkerMb: cluster.peakWorkerBytes / 1e6,
    seconds: Math.round(cluster.nowMs / 100) / 10,
  };
}

describe.each([
  { graph: [256, 8], workers: [2, 2, 2, 2] },
  { graph: [512, 4], workers: [2, 2, 2, 2] },
  { graph: [256, 16], workers: [4, 4] },
] as const)(
  'a map-reduce of $graph.0 parts, $graph.1 at a time, on workers with $workers threads',
  ({ graph, workers }) => {
    it('moves less than a third with family, needs no more memory, and takes no longer', () => {
      const spread = simulate(made(rootish), graph, workers);
      const together = simulate(made(family), graph, workers);
      process.stdout.write(
        `${graph.join(' by ')} on ${workers.join('+')} threads: root-ish ${line(spread)}; family ${line(together)}\n`,
      );
      expect(together.movedMb).toBeLessThan(spread.movedMb / 3);
      expect(together.peakTotalMb).toBeLessThanOrEqual(spread.peakTotalMb);
      expect(together.peakWorkerMb).toBeLessThanOrEqual(spread.peakWorkerMb);
      expect(together.seconds).toBeLessThanOrEqual(1.02 * spread.seconds);
    });
  },
);

it('with many single threads each has its own family in memory: less is moved, more is held', () => {
  const workers = [1, 1, 1, 1, 1, 1, 1, 1];
  const spread = simulate(made(rootish), [512, 8], workers);
  const together = simulate(made(family), [512, 8], workers);
  process.stdout.write(
    `512 by 8 on 8 single threads: root-ish ${line(spread)}; family ${line(together)}\n`,
  );
  expect(together.movedMb).toBeLessThan(spread.movedMb / 3);
  // The price that docs/policies.md names.
  expect(together.peakTotalMb).toBeLessThan(2 * spread.peakTotalMb);
});

function line({ movedMb, peakTotalMb, peakWorkerMb, seconds }: Figures): string {
  return `moves ${movedMb} MB, holds ${peakTotalMb} MB (${peakWorkerMb} MB on one), ${seconds} s`;
}
