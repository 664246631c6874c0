/** How a shuffle describes itself, which differs between the releases of Dask's workers. */
import { toNumber } from '../codec/index.ts';
import type { Fields } from '../context.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { asList, isFields } from '../codec/values.ts';

/** Which worker gets which output partition. */
export type Placement = readonly (readonly [partition: unknown, worker: string])[];

export type ShuffleSource =
  /** Since 2024.11 the barrier task has the specification, which only Python reads. */
  | { readonly kind: 'barrier' }
  /** 2023.8.1 to 2024.10: workers send it, as an object of Python. */
  | { readonly kind: 'spec'; readonly spec: unknown }
  /** Before 2023.8.1 workers send it as plain data. */
  | { readonly kind: 'fields'; readonly type: unknown; readonly spec: Fields };

/** The source in a `shuffle_get_or_create`. */
export function sourceIn({ type, spec }: Fields): ShuffleSource {
  if (type !== undefined && isFields(spec)) return { kind: 'fields', type, spec };
  return spec === undefined ? { kind: 'barrier' } : { kind: 'spec', spec };
}

/**
 * Spreads the output partitions of a shuffle that is described by plain data. O(partitions).
 * @param workers - at least one; neighbouring partitions go to the same one
 * @param placed - partitions whose workers are settled already
 */
export function placeByFields(
  spec: Fields,
  workers: readonly string[],
  placed: Placement,
): Placement {
  const settled = new Map(placed.map(([partition, worker]) => [JSON.stringify(partition), worker]));
  return [...partitionsOf(spec)].map(({ partition, position, count }) => {
    const share = workers[Math.floor((workers.length * position) / count)] as string;
    return [partition, settled.get(JSON.stringify(partition)) ?? share];
  });
}

interface Partition {
  readonly partition: unknown;
  /** Among all of the shuffle, those that are not wanted included. */
  readonly position: number;
  readonly count: number;
}

/** Of a dataframe `parts_out` of `npartitions`; of an array each of the `new` chunks. */
function* partitionsOf({
  npartitions,
  parts_out: wanted,
  new: chunks,
}: Fields): Iterable<Partition> {
  const axes = asList(chunks)?.map((axis) => asList(axis)?.length ?? 0);
  if (axes !== undefined) {
    const count = axes.reduce((product, length) => product * length, 1);
    for (let position = 0; position < count; position++) {
      yield { partition: indexAt(position, axes), position, count };
    }
    return;
  }
  const count = toNumber(npartitions);
  if (count === undefined) {
    throw new PythonException('TypeError', 'a shuffle is a dataframe shuffle or an array rechunk');
  }
  const all = asList(wanted) ?? Array.from({ length: count }, (_, index) => index);
  for (const partition of all) {
    yield { partition, position: Math.min(count - 1, toNumber(partition) ?? 0), count };
  }
}

/** The last axis changes fastest. */
function indexAt(position: number, axes: readonly number[]): number[] {
  const index: number[] = [];
  let rest = position;
  for (const length of axes.toReversed()) {
    index.unshift(rest % length);
    rest = Math.floor(rest / length);
  }
  return index;
}

/** Fields of a specification that workers do not want back. */
const FOR_PLACING: ReadonlySet<string> = new Set(['npartitions', 'parts_out']);

/** The answer to a worker that takes part in a shuffle of plain data. */
export function answerByFields(
  { type, spec }: Extract<ShuffleSource, { kind: 'fields' }>,
  runId: number,
  placement: Placement,
): Fields {
  const described = Object.entries(spec).filter(([name]) => !FOR_PLACING.has(name));
  return {
    status: 'OK',
    type,
    run_id: runId,
    worker_for: new Map(placement),
    output_workers: new Set(placement.map(([, worker]) => worker)),
    ...Object.fromEntries(described),
  };
}
