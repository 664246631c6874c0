/**
 * The graphs of the benchmarks: patterns of about as many tasks as one likes, and the graphs of the
 * literature by name, whose size is given. `dask_shapes.py` has the same for the peer.
 */
import {
  chains,
  crossv,
  map,
  merge,
  overlap,
  shuffle,
  tree,
  vectorizer,
  wordbag,
  type Workload,
  workload,
  WORKLOADS,
} from '../../adapters/workloads/index.ts';

/** A graph to submit and the keys to ask for. */
export type Shape = Pick<Workload, 'tasks' | 'keys'>;

/** Chains beside each other, and tasks in each step of the stencil. */
const WIDTH = 100;

const PATTERNS: Readonly<Record<string, (n: number) => Workload>> = {
  merge,
  map,
  tree: (n) => tree(Math.floor(Math.log2(Math.floor(n / 2) + 1)) + 1),
  chain: (n) => chains(1, n),
  chains: (n) => chains(WIDTH, Math.floor(n / WIDTH)),
  shuffle: (n) => shuffle(Math.floor(Math.sqrt(n))),
  overlap: (n) => overlap(WIDTH, Math.floor(n / WIDTH)),
  vectorizer,
  wordbag: (n) => wordbag(Math.floor(n / 5)),
  crossv: (n) => crossv(Math.floor(n / 11)),
};

/**
 * By name. The number of tasks is approximate for patterns, and ignored for the graphs of the
 * literature.
 */
export const SHAPES: Readonly<Record<string, (n: number) => Shape>> = Object.fromEntries([
  ...Object.entries(PATTERNS).map(([name, make]) => [name, (n: number) => bare(make(n))] as const),
  ...WORKLOADS.map((name) => [name, () => bare(workload(name))] as const),
]);

/** What tasks would cost is not kept: memory is measured, too. */
function bare({ tasks, keys }: Workload): Shape {
  return { tasks, keys };
}
