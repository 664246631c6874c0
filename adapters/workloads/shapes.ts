import { YardmasterError } from '../../core/api/index.ts';
import { parseBytes, parseDurationMs } from '../../core/util/units.ts';
import { countOf } from '../../core/util/values.ts';
import * as synthetic from './synthetic.ts';
import { COST_MAX, type Workload } from './workload.ts';

/** The part of a workload that is simulated. */
export type SimulatedWorkload = Pick<Workload, 'name' | 'tasks' | 'keys' | 'durationsS' | 'nbytes'>;

interface Sized {
  readonly make: (...sizes: number[]) => Workload;
  /** The number of sizes that it takes. */
  readonly sizes: number;
  /** About how many tasks it has. Default: the product of the sizes. */
  readonly count?: (...sizes: number[]) => number;
}

/** The most tasks that are simulated: they have to fit into memory. */
const TASKS_MAX = 20_000_000;

const SIZED: Readonly<Record<string, Sized>> = {
  merge: { make: (leaves) => synthetic.merge(leaves), sizes: 1 },
  merge_slow: { make: (leaves) => synthetic.mergeSlow(leaves), sizes: 1 },
  map: { make: (tasks) => synthetic.map(tasks), sizes: 1 },
  tree: { make: (levels) => synthetic.tree(levels), sizes: 1, count: (levels) => 2 ** levels },
  chains: { make: (count, length) => synthetic.chains(count, length), sizes: 2 },
  shuffle: { make: (n) => synthetic.shuffle(n), sizes: 1, count: (n) => n * n },
  overlap: { make: (width, steps) => synthetic.overlap(width, steps), sizes: 2 },
  vectorizer: { make: (batches) => synthetic.vectorizer(batches), sizes: 1 },
  wordbag: { make: (batches) => synthetic.wordbag(batches), sizes: 1, count: (n) => 5 * n },
  mapreduce: { make: (n) => synthetic.mapreduce(n), sizes: 1, count: (n) => n * n },
  crossv: { make: (n) => synthetic.crossv(n), sizes: 1, count: (n) => 11 * n },
};

/** Names of the graphs that are made in any size. */
export const SHAPES: readonly string[] = Object.keys(SIZED);

/**
 * A graph by its shape and size, such as `tree:8` or `chains:10,20`; undefined when there is no such shape.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when its size is wrong
 */
export function shaped(name: string): Workload | undefined {
  const [shape = '', sizesText = ''] = name.split(/:(.*)/s);
  const sized = Object.hasOwn(SIZED, shape) ? SIZED[shape] : undefined;
  if (sized === undefined) return undefined;
  const sizes = sizesText.split(',').map(Number);
  if (
    sizes.length !== sized.sizes ||
    !sizes.every((size) => Number.isSafeInteger(size) && size > 0)
  ) {
    const example = sized.sizes === 1 ? `${shape}:10` : `${shape}:10,20`;
    throw invalidWorkload(
      name,
      `needs ${countOf(sized.sizes, 'whole number')}, 1 or more, as in ${example}`,
    );
  }
  const { count = product } = sized;
  if (count(...sizes) > TASKS_MAX) {
    throw invalidWorkload(name, `has more than ${TASKS_MAX} tasks, the most that are simulated`);
  }
  return { ...sized.make(...sizes), name };
}

/** About as many tasks as there are pairs of sizes. */
function product(...sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all * size, 1);
}

/**
 * A workload each of whose tasks takes this duration and has a result of this size.
 * @param text - the name of the workload with its cost, as in `tree:8@100ms,10MB`
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function withCost(
  workload: SimulatedWorkload,
  text: string,
  cost: string,
): SimulatedWorkload {
  const [duration = '', size, ...others] = cost.split(',');
  const ms = parseDurationMs(duration) ?? NaN;
  const bytes = size === undefined ? undefined : (parseBytes(size) ?? NaN);
  const isWithin = (amount: number, most: number): boolean => amount >= 0 && amount <= most;
  if (
    others.length > 0 ||
    !isWithin(ms, COST_MAX.durationS * 1000) ||
    !isWithin(bytes ?? 0, COST_MAX.nbytes)
  ) {
    throw invalidWorkload(
      text,
      'has a wrong cost: write a duration (thirty years at most) and a size (8 PiB at most) after the @, as in tree:8@100ms,10MB',
    );
  }
  return {
    ...workload,
    name: text,
    durationsS: workload.durationsS.map(() => ms / 1000),
    ...(bytes === undefined ? {} : { nbytes: workload.nbytes.map(() => bytes) }),
  };
}

/** @param what - for people: what is wrong with the workload of this name */
export function invalidWorkload(name: string, what: string): YardmasterError {
  return new YardmasterError('ERR_GRAPH_INVALID', `"${name}" ${what}`, { workload: name });
}
