import type { ClusterView, Priority, TaskView, WorkerView } from '../../core/api/index.ts';
import { Family } from './families.ts';
import type { FamilyLine } from './family-line.ts';

/** What the policy `family` remembers, as plain data. */
export interface FamilyMemory {
  readonly graphCount: number;
  readonly families: readonly SavedFamily[];
  /** Ids that have been given a meaning are below this. */
  readonly idEnd: number;
  /** Ids of roots. */
  readonly roots: readonly number[];
  /** Families of tasks that were not sent to a worker yet, by their ids. */
  readonly memberships: readonly (readonly [task: number, family: number])[];
  /** The family that a worker takes tasks from. */
  readonly runs: readonly (readonly [worker: string, family: number])[];
  readonly line: readonly (readonly [family: number, priority: Priority])[];
}

interface SavedFamily {
  readonly isBounded: boolean;
  readonly graph: number;
  /** Address, or `null`. */
  readonly worker: string | null;
  /** Ids of tasks. */
  readonly roots: readonly number[];
}

/** What the policy works on. */
export interface FamilyTables {
  readonly isRoot: boolean[];
  readonly families: (Family | undefined)[];
  readonly runs: Pick<WeakMap<WorkerView, Family>, 'get' | 'set'>;
  readonly line: FamilyLine;
}

/** O(tasks). */
export function rememberFamilies(
  { isRoot, families, runs, line }: FamilyTables,
  graphCount: number,
  { tasks, workers }: ClusterView,
): FamilyMemory {
  const all = new Map<Family, number>();
  const placeOf = (family: Family): number => {
    const place = all.get(family) ?? all.size;
    all.set(family, place);
    return place;
  };
  const roots: number[] = [];
  const memberships: [number, number][] = [];
  for (const { id } of tasks.values()) {
    if (isRoot[id] === true) roots.push(id);
    const family = families[id];
    if (family !== undefined) memberships.push([id, placeOf(family)]);
  }
  const memory = {
    graphCount,
    idEnd: isRoot.length,
    roots,
    memberships,
    runs: [...workers.values()].flatMap((worker) => {
      const family = runs.get(worker);
      return family === undefined ? [] : [[worker.address, placeOf(family)] as const];
    }),
    line: line.waiting.map(({ family, priority }) => [placeOf(family), priority] as const),
  };
  const saved = [...all.keys()].map(({ isBounded, graph, worker, left }): SavedFamily => {
    const isThere = worker !== undefined && workers.get(worker.address) === worker;
    const address = isThere ? worker.address : null;
    return { isBounded, graph, worker: address, roots: left.map(({ id }) => id) };
  });
  return { ...memory, families: saved };
}

/** The reverse of {@link rememberFamilies}, into empty tables. */
export function restoreFamilies(
  { isRoot, families, runs, line }: FamilyTables,
  memory: FamilyMemory,
  { tasks, workers }: ClusterView,
): void {
  const byId: (TaskView | undefined)[] = [];
  for (const task of tasks.values()) byId[task.id] = task;
  const all = memory.families.map(({ isBounded, graph, worker, roots }) => {
    const family = new Family(isBounded);
    family.graph = graph;
    family.worker = worker === null ? undefined : workers.get(worker);
    for (const id of roots) {
      const root = byId[id];
      if (root !== undefined) family.roots.push(root);
    }
    return family;
  });
  while (isRoot.length < memory.idEnd) {
    isRoot.push(false);
    families.push(undefined);
  }
  for (const id of memory.roots) isRoot[id] = true;
  for (const [id, place] of memory.memberships) families[id] = all[place];
  for (const [address, place] of memory.runs) {
    const worker = workers.get(address);
    const family = all[place];
    if (worker !== undefined && family !== undefined) runs.set(worker, family);
  }
  for (const [place, priority] of memory.line) {
    const family = all[place];
    if (family !== undefined) line.add(family, priority);
  }
}
