import { type TaskView, type WorkerView, YardmasterError } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import type { ClusterWorker } from './cluster-workers.ts';

/** What the command `amm.retireWorkers` says of workers that stay. */
interface Retirement {
  /** By address, or by name when the scheduler does not know it. */
  readonly kept: readonly { readonly worker: string; readonly reason: string }[];
}

/** A worker that was not closed, because what it holds would be lost. */
export interface KeptWorker {
  readonly worker: string;
  readonly reason: string;
}

/** The workers to close, the youngest first; those that hold an actor come last. */
export function surplusOf(
  workers: readonly ClusterWorker[],
  count: number,
  { cluster }: Scheduler,
): readonly ClusterWorker[] {
  const busy = new Set<string>();
  for (const { name, actors } of cluster.workers.values()) if (actors.size > 0) busy.add(name);
  const youngestFirst = workers.toReversed();
  const order = [
    ...youngestFirst.filter(({ name }) => !busy.has(name)),
    ...youngestFirst.filter(({ name }) => busy.has(name)),
  ];
  return order.slice(0, Math.max(0, workers.length - count));
}

/**
 * Has the scheduler move what only these workers hold to others, and closes them. A worker whose results
 * no other one takes is closed as well when they can all be computed again.
 *
 * @returns the workers that hold an actor, or data that cannot be computed again and that no other worker
 *   takes. They work on.
 */
export async function retireSurplus(
  surplus: readonly ClusterWorker[],
  scheduler: Scheduler,
): Promise<readonly KeptWorker[]> {
  if (surplus.length === 0) return [];
  const names = surplus.map(({ name }) => name);
  const { kept } = (await scheduler.command('amm.retireWorkers', { names })) as Retirement;
  const staying = kept.flatMap(({ worker: address }): KeptWorker[] => {
    const worker = scheduler.cluster.workers.get(address);
    const reason = worker && reasonToKeep(worker, new Set(names));
    return worker === undefined || reason === undefined ? [] : [{ worker: worker.name, reason }];
  });
  const isStaying = (name: string): boolean => staying.some(({ worker }) => worker === name);
  const leaving = surplus.filter(({ name }) => !isStaying(name));
  await Promise.all(leaving.map((worker) => worker.close()));
  await Promise.all(leaving.map(({ ended }) => ended));
  return staying;
}

/** O(results of the worker, and of what they are made of). */
function reasonToKeep(worker: WorkerView, leaving: ReadonlySet<string>): string | undefined {
  if (worker.actors.size > 0) return 'holds an actor';
  const seen = new Set<TaskView>();
  for (const task of worker.hasWhat) {
    const hasOtherCopy = task.whoHas.items.some(({ name }) => !leaving.has(name));
    if (hasOtherCopy || isComputable(task, seen)) continue;
    return `holds data that cannot be computed again ("${task.key}"), and no other worker takes it`;
  }
  return undefined;
}

/**
 * Whether a task can be computed again when its result is lost: inputs that are in memory are there, or are
 * looked at themselves.
 * @param seen - tasks that can be computed
 */
function isComputable(task: TaskView, seen: Set<TaskView>): boolean {
  const pending = [task];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (next.runSpec === undefined) return false;
    for (const input of next.dependencies) if (input.state !== 'memory') pending.push(input);
  }
  return true;
}

/** That a cluster has more workers than it was asked to have. */
export function keptError(kept: readonly KeptWorker[], count: number): YardmasterError {
  const each = kept.map(({ worker, reason }) => `${worker} ${reason}`).join('; ');
  return new YardmasterError(
    'ERR_RETIRE',
    `the cluster was not scaled to ${count}: worker ${each}; release that first, or leave more workers`,
    { count, kept },
  );
}
