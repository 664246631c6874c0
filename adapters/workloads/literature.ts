import { YardmasterError } from '../../core/api/index.ts';
import { RECORDED, recorded } from './recorded.ts';
import { crossv, mapreduce, merge, mergeSlow, tree, vectorizer, wordbag } from './synthetic.ts';
import type { Workload } from './workload.ts';

// The graphs by which schedulers are compared in the literature:
// J. Beránek and S. Böhm, "Runtime vs Scheduler: Analyzing Dask's Overheads", WORKS 2020 (arXiv
// 2010.11105), and the appendix of J. Beránek's thesis; `mapreduce-160` and `crossv-8` are from J. Beránek
// and others, "Analysis of workflow schedulers in simulated distributed environments", J. Supercomputing 78.
const ENTRIES: ReadonlyMap<string, () => Workload> = new Map([
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
  return { ...found(), name };
}

function entry(name: string, make: () => Workload): [string, () => Workload] {
  return [name, make];
}
