import { classify } from '../../core/kernel/occupancy.ts';
import { groupOfKey, prefixOfKey } from '../../core/state/groups.ts';
import { DEFAULT_ROOTISH_LIMITS, isRootish } from '../../policies/queuing/is-rootish.ts';
import { slotLimit } from '../../policies/queuing/root-ish.ts';
import type { CaseResult } from './report.ts';
import { TraceKernel } from './trace-kernel.ts';

/** Tables of single functions: which input gives which answer. */
export interface UnitTables {
  readonly isRootish?: readonly {
    readonly totalNthreads: number;
    readonly groupSize: number;
    readonly dependencyGroupSizes: readonly number[];
    readonly restriction: string | null;
    readonly rootish: boolean;
  }[];
  readonly taskSlots?: readonly {
    readonly workerSaturation: number | 'inf';
    readonly nthreads: number;
    readonly nprocessing: number;
    readonly nlongRunning: number;
    readonly slotsAvailable: number;
    readonly full: boolean;
  }[];
  readonly idleSaturated?: readonly {
    readonly nthreads: number;
    readonly nprocessing: number;
    readonly occupancy: number;
    readonly totalNthreads: number;
    readonly totalOccupancy: number;
    readonly idle: boolean;
    readonly saturated: boolean;
    readonly openSlotsAtSaturation1_1?: boolean;
  }[];
  readonly keySplit?: readonly {
    readonly key: string;
    readonly prefix: string;
    readonly group: string;
  }[];
}

export function runTables(tables: UnitTables): CaseResult[] {
  return [
    ...run('isRootish', tables.isRootish, (row) => [row.rootish, rootishAnswer(row)]),
    ...run('taskSlots', tables.taskSlots, (row) => {
      const saturation = row.workerSaturation === 'inf' ? Infinity : row.workerSaturation;
      const slots = slotLimit(saturation, row.nthreads) - (row.nprocessing - row.nlongRunning);
      return [
        { slots: saturation === Infinity ? 'inf' : row.slotsAvailable, full: row.full },
        { slots: saturation === Infinity ? 'inf' : slots, full: slots <= 0 },
      ];
    }),
    ...run('idleSaturated', tables.idleSaturated, (row) => {
      const average = row.totalOccupancy / row.totalNthreads;
      const found = classify(row.occupancy, row.nprocessing, row.nthreads, average);
      return [
        { isIdle: row.idle, isSaturated: row.saturated, open: row.openSlotsAtSaturation1_1 },
        {
          ...found,
          open:
            row.openSlotsAtSaturation1_1 === undefined
              ? undefined
              : slotLimit(1.1, row.nthreads) > row.nprocessing,
        },
      ];
    }),
    ...run('keySplit', tables.keySplit, (row) => [
      { prefix: row.prefix, group: row.group },
      { prefix: prefixOfKey(row.key), group: groupOfKey(row.key) },
    ]),
  ];
}

function run<Row>(
  table: string,
  rows: readonly Row[] | undefined,
  answer: (row: Row) => readonly [expected: unknown, actual: unknown],
): CaseResult[] {
  return (rows ?? []).map((row, index) => {
    const id = `${table}-${index}`;
    const [expected, actual] = answer(row).map((value) => JSON.stringify(value));
    if (expected === actual) return { id };
    return {
      id,
      failure: `${actual ?? ''} instead of ${expected ?? ''} for ${JSON.stringify(row)}`,
    };
  });
}

function rootishAnswer(row: NonNullable<UnitTables['isRootish']>[number]): boolean {
  const { cluster } = new TraceKernel({}).kernel;
  cluster.totalThreads = row.totalNthreads;
  const task = cluster.newTask('task', 'group', 'prefix');
  task.group.size = row.groupSize;
  row.dependencyGroupSizes.forEach((size, index) => {
    const other = cluster.newTask(`other-${index}`, `other-${index}`, 'other').group;
    other.size = size;
    task.group.dependencies.add(other);
  });
  if (row.restriction === 'worker') task.restrictions = { workers: new Set(['tcp://a:1']) };
  if (row.restriction === 'host') task.restrictions = { hosts: new Set(['a']) };
  if (row.restriction === 'resource') task.restrictions = { resources: new Map([['A', 1]]) };
  return isRootish(task, cluster, DEFAULT_ROOTISH_LIMITS);
}
