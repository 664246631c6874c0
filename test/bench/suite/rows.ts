/** What `npm run bench` measures, and what is expected of it. */
import { endToEnd, large, latency, latencyOfThreads, pools, wire } from './cluster-rows.ts';
import { cost } from './cost-row.ts';
import { served, servedData } from './dask-rows.ts';
import { growth, kernelBesideDask, million } from './kernel-rows.ts';
import { amm, orderBesideDask, ownPolicy, steal } from './policy-rows.ts';
import type { Row } from './row.ts';

/** In the order of the table. */
export const ROWS: readonly Row[] = [
  kernelBesideDask('tree', 100, { ratio: 25, us: 3.3, updateGraph: 15 }),
  kernelBesideDask('chains', 100, { ratio: 25, us: 3.3, updateGraph: 15 }),
  kernelBesideDask('shuffle', 100, { ratio: 25, us: 3.3, updateGraph: 15 }),
  kernelBesideDask('overlap', 100, { ratio: 25, us: 3.3, updateGraph: 20 }),
  kernelBesideDask('merge', 1000, { ratio: 60 }),
  growth(
    '1000 workers against 10',
    1.3,
    ({ tasks }) => [tasks, 10],
    ({ tasks }) => [tasks, 1000],
  ),
  growth(
    '10000 workers against 10',
    1.2,
    ({ tasks }) => [tasks, 10],
    ({ tasks }) => [tasks, 10_000],
  ),
  growth(
    'ten or a hundred times the tasks',
    1.5,
    () => [10_000, 100],
    ({ isFull }) => [isFull ? 1_000_000 : 100_000, 100],
  ),
  orderBesideDask('tree'),
  orderBesideDask('shuffle'),
  orderBesideDask('overlap'),
  steal,
  amm('reduce', 'a copy dropped by reduce-replicas, 1000 workers', 15),
  amm('retire', 'a result of a retiring worker, 1000 workers', 40),
  ownPolicy('a copy dropped by reduce-replicas, 1000 workers', 'amm', 'usPerUnit', ({ tasks }) => [
    tasks,
    1000,
    '--kind',
    'reduce',
  ]),
  ownPolicy('kernel, tree, 100 workers, where tasks run', 'kernel', 'usPerTask', ({ tasks }) => [
    'tree',
    tasks,
    100,
  ]),
  endToEnd,
  latency,
  latencyOfThreads,
  pools,
  cost,
  wire,
  large,
  million,
  served,
  servedData,
];
