/**
 * Graphs that Dask made of real computations. `test/bench/record_graphs.py` recorded them; they are read
 * when they are asked for.
 */
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { type GraphCounts, type TaskCost, type Workload, WorkloadBuilder } from './workload.ts';

/**
 * Names of the recorded graphs, as in the literature. What the numbers mean:
 *
 * - `numpy-50K-n`: a random matrix of 50 000 by 50 000 in n by n blocks, added to its transpose, and
 *   reduced.
 * - `bag-25K-n`: 25 000 people in n partitions, filtered, and combined with each other.
 * - `groupby-d-1S-p`: a time series with a row per second over d days, a partition for each p (`H`:
 *   hours), grouped and resampled.
 * - `join-1-1S-p`: such a series joined with itself (`T`: minutes).
 * - `xarray-c`: air temperatures in chunks of c by c places, minus their weekly means.
 *
 * Recorded with Dask 2022.12.1; the literature measured with 2.16 of 2020. `bag`, `join` and `xarray` are
 * the same in both. `numpy-50K-n` has n/2 tasks less than there: the blocks on the diagonal are made in
 * the task that adds them. `groupby` has a task more per partition, which selects columns before rows are
 * grouped, so that its longest path is one longer. Costs are means per kind of task, measured while the
 * same computation ran on fewer partitions of the same size, where it would have taken long.
 */
export const RECORDED = [
  'bag-25K-10',
  'bag-25K-50',
  'bag-25K-100',
  'bag-25K-200',
  'groupby-90-1S-1H',
  'groupby-90-1S-8H',
  'groupby-360-1S-1H',
  'groupby-2880-1S-16H',
  'join-1-1S-1H',
  'join-1-1S-1T',
  'numpy-50K-50',
  'numpy-50K-100',
  'numpy-50K-200',
  'xarray-5',
  'xarray-25',
] as const;

/** One of {@link RECORDED}. */
export type RecordedName = (typeof RECORDED)[number];

/** A file of `recorded/`. A column is base64 of deflated little-endian 32-bit integers. */
interface Recording extends GraphCounts {
  /** Numbers of the tasks whose results are wanted. */
  readonly wanted: readonly number[];
  readonly groups: readonly {
    readonly prefix: string;
    /** Means over all tasks of the prefix: CPU microseconds, bytes. */
    readonly durationUs: number;
    readonly resultBytes: number;
  }[];
  readonly columns: {
    /** For each task. */
    readonly group: string;
    /** For each task, how many it needs. */
    readonly needCount: string;
    /** For each needed task, task after task: its number minus the one before. */
    readonly needStep: string;
  };
}

/** The position of the reader of a column. */
interface Cursor {
  readonly steps: Int32Array;
  at: number;
  /** The needed task that was read last. */
  number: number;
}

/** A recorded graph. Keys are as those of Dask's collections: `('sum-partial-3', 17)`. */
export function recorded(name: RecordedName): Workload {
  const file = new URL(`./recorded/${name}.json`, import.meta.url);
  const recording = JSON.parse(readFileSync(file, 'utf8')) as Recording;
  const { columns } = recording;
  const needCounts = unpack(columns.needCount);
  const cursor: Cursor = { steps: unpack(columns.needStep), at: 0, number: 0 };
  const groups = recording.groups.map(({ prefix, durationUs, resultBytes }, number) => {
    const cost: TaskCost = { durationS: durationUs / 1e6, nbytes: resultBytes };
    return { token: `${prefix}-${number}`, cost, size: 0 };
  });
  const graph = new WorkloadBuilder();
  unpack(columns.group).forEach((groupNumber, number) => {
    const group = groups[groupNumber];
    if (group === undefined) throw new RangeError(`${name}: there is no group ${groupNumber}`);
    const needs = readNeeds(cursor, needCounts[number] as number);
    graph.add(`('${group.token}', ${group.size++})`, needs, group.cost);
  });
  return graph.build(name, recording.wanted);
}

function readNeeds(cursor: Cursor, count: number): number[] {
  const needs: number[] = [];
  for (let need = 0; need < count; need++) {
    cursor.number += cursor.steps[cursor.at++] as number;
    needs.push(cursor.number);
  }
  return needs;
}

function unpack(column: string): Int32Array {
  const bytes = inflateSync(Buffer.from(column, 'base64'));
  const numbers = new Int32Array(bytes.length / 4);
  return numbers.map((_, index) => bytes.readInt32LE(4 * index));
}
