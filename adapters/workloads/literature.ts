/**
 * The graphs by which schedulers are compared in the literature, with the figures given there:
 * J. Beránek and S. Böhm, "Runtime vs Scheduler: Analyzing Dask's Overheads", WORKS 2020 (arXiv
 * 2010.11105), and the appendix of J. Beránek's thesis; `mapreduce-160` and `crossv-8` are from J. Beránek
 * and others, "Analysis of workflow schedulers in simulated distributed environments", J. Supercomputing 78.
 */
import { YardmasterError } from '../../core/api/index.ts';
import { crossv, mapreduce, vectorizer, wordbag } from './applications.ts';
import { merge, mergeSlow, tree } from './elementary.ts';
import { RECORDED, recorded } from './recorded.ts';
import type { PublishedFigures, Workload } from './workload.ts';

/** A graph of the literature. */
interface Entry {
  make(): Workload;
  readonly published?: PublishedFigures;
}

/** Tasks, dependencies, mean KiB of a result, mean ms of a task, longest path. */
type Row = readonly [number, number, number, number, number];

/** From the tables of the literature. */
const TABLE: Readonly<Record<string, Row>> = {
  'merge-10K': [10_001, 10_000, 0.03, 0.006, 1],
  'merge-15K': [15_001, 15_000, 0.03, 0.006, 1],
  'merge-20K': [20_001, 20_000, 0.03, 0.006, 1],
  'merge-25K': [25_001, 25_000, 0.03, 0.006, 1],
  'merge-30K': [30_001, 30_000, 0.03, 0.006, 1],
  'merge-50K': [50_001, 50_000, 0.03, 0.006, 1],
  'merge-100K': [100_001, 100_000, 0.03, 0.006, 1],
  'merge_slow-5K': [5001, 5000, 0.02, 100, 1],
  'merge_slow-20K': [20_001, 20_000, 0.02, 100, 1],
  'tree-15': [32_767, 32_766, 0.03, 0.007, 14],
  'vectorizer-1M-300': [301, 0, 10_226, 1504, 0],
  'wordbag-100K-50': [250, 200, 5136, 301, 2],
  'xarray-5': [9258, 14_976, 3.3, 0.4, 10],
  'xarray-25': [552, 862, 56, 3.1, 10],
  'bag-25K-10': [236, 415, 292, 1233, 6],
  'bag-25K-50': [5458, 10_357, 12.6, 55, 7],
  'bag-25K-100': [21_631, 41_430, 3.2, 13.9, 8],
  'bag-25K-200': [86_116, 165_715, 0.8, 3.6, 9],
  'numpy-50K-50': [4892, 5491, 2999, 8.3, 9],
  'numpy-50K-100': [19_334, 21_783, 760, 2.6, 10],
  'numpy-50K-200': [77_067, 86_966, 191, 0.9, 11],
  'groupby-90-1S-1H': [11_424, 15_743, 64, 3.9, 8],
  'groupby-90-1S-8H': [1434, 1973, 501, 7.7, 7],
  'groupby-360-1S-1H': [45_674, 62_953, 64, 3.8, 9],
  'groupby-2880-1S-16H': [22_842, 31_481, 1005, 11.9, 9],
  'join-1-1S-1H': [673, 1224, 15, 33, 5],
  'join-1-1S-1T': [72_001, 125_568, 3.7, 1.7, 11],
};

const ENTRIES: ReadonlyMap<string, Entry> = new Map([
  ...[10, 15, 20, 25, 30, 50, 100].map((thousands) =>
    entry(`merge-${thousands}K`, () => merge(thousands * 1000)),
  ),
  entry('merge_slow-5K', () => mergeSlow(5000)),
  entry('merge_slow-20K', () => mergeSlow(20_000)),
  entry('tree-15', () => tree(15)),
  entry('vectorizer-1M-300', () => vectorizer(301)),
  entry('wordbag-100K-50', () => wordbag(50)),
  entry('mapreduce-160', () => mapreduce(160)),
  entry('crossv-8', () => crossv(8)),
  ...RECORDED.map((name) => entry(name, () => recorded(name))),
]);

/** Names that {@link workload} knows. */
export const WORKLOADS: readonly string[] = [...ENTRIES.keys()];

/**
 * A graph of the literature by its name and in its size there: `workload('tree-15')`. Recorded
 * graphs are read from a file, which takes some milliseconds each.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID` when no graph has this name
 */
export function workload(name: string): Workload {
  const found = ENTRIES.get(name);
  if (found === undefined) {
    const message = `there is no workload "${name}"; choose one of ${WORKLOADS.join(', ')}`;
    throw new YardmasterError('ERR_GRAPH_INVALID', message, { name });
  }
  const { published } = found;
  return { ...found.make(), name, ...(published === undefined ? {} : { published }) };
}

function entry(name: string, make: () => Workload): [string, Entry] {
  const row = TABLE[name];
  if (row === undefined) return [name, { make }];
  const [tasks, dependencies, meanResultKib, meanDurationMs, longestPath] = row;
  const published = { tasks, dependencies, longestPath, meanResultKib, meanDurationMs };
  return [name, { make, published }];
}
