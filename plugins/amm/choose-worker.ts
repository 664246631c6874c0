import type { RefusalReason, TaskView, WorkerView } from '../../core/api/index.ts';
import type { ReadSuggestion } from './read-suggestion.ts';
import type { WorkerList } from './worker-list.ts';
import { isEmptier, isFree, type WorkerLoad, type WorkerLoads } from './worker-loads.ts';

/**
 * The worker that receives one more copy: of the running candidates without one, the one with the
 * least memory; or why there is none. O(1) without candidates as a rule, else O(candidates).
 */
export function chooseRecipient(
  loads: WorkerLoads,
  running: { readonly size: number; has(worker: WorkerView): boolean },
  { task, candidates }: ReadSuggestion,
  coming: WorkerList,
): WorkerLoad | RefusalReason {
  if (task.state !== 'memory') return 'not-in-memory';
  if (task.isActor) return 'actor';
  if (candidates === undefined) {
    return loads.emptiest(task, coming) ?? (running.size === 0 ? 'not-running' : 'no-recipient');
  }
  let best: WorkerLoad | undefined;
  let isAnyRunning = false;
  for (const worker of candidates) {
    const load = loads.of(worker);
    if (load === undefined || !running.has(worker)) continue;
    isAnyRunning = true;
    if (!isFree(worker, task, coming)) continue;
    if (best === undefined || isEmptier(load, best)) best = load;
  }
  return best ?? (isAnyRunning ? 'no-recipient' : 'not-running');
}

/**
 * The worker that drops its copy: of the candidates that hold one and do not need it for a task that
 * is processing there, one that is not running, else the one with the most memory; or why there is
 * none. O(candidates + waiters of the task).
 *
 * @param wanted - copies that are left at least, unless the suggestion forces it
 */
export function chooseDropper(
  loads: WorkerLoads,
  { task, candidates, force }: ReadSuggestion,
  going: WorkerList,
  wanted: number,
): WorkerLoad | RefusalReason {
  if (task.whoHas.size === 0) return 'not-in-memory';
  if (task.isActor) return 'actor';
  const copies = task.whoHas.size - going.size;
  if (copies < 2) return 'last-copy';
  if (copies <= wanted && force !== true) return 'replicas-wanted';
  const readers = readersOf(task);
  let best: WorkerLoad | undefined;
  let hasOtherFree = false;
  let excluded = 0;
  let excludedRunning = 0;
  for (const worker of candidates ?? task.whoHas.items) {
    if (candidates !== undefined && !worker.hasWhat.has(task)) continue;
    if (going.size > 0 && going.has(worker)) continue;
    if (readers?.has(worker) === true) {
      excluded++;
      if (worker.status === 'running') excludedRunning++;
      continue;
    }
    const load = loads.of(worker);
    if (load === undefined || load === best) continue;
    hasOtherFree ||= best !== undefined;
    if (best === undefined || isRatherDropped(load, best)) best = load;
  }
  if (best === undefined) return excluded > 0 ? 'in-use' : 'no-holder';
  // A holder that is leaving but busy will be wanted gone next: the last running copy stays until
  // then, or two policies would copy to and fro.
  const isOnlyFree = !hasOtherFree && best.worker.status === 'running';
  return isOnlyFree && excluded > 0 && excludedRunning === 0 ? 'last-running-copy' : best;
}

/** Workers on which a task is processing that reads this result; undefined when there are none. */
function readersOf(task: TaskView): Set<WorkerView> | undefined {
  if (task.waiterCount === 0) return undefined;
  let readers: Set<WorkerView> | undefined;
  for (const { processingOn } of task.waiters) {
    if (processingOn !== undefined) (readers ??= new Set()).add(processingOn);
  }
  return readers;
}

/** Those that are not running go first, then those with the most memory, then the lowest rank. */
function isRatherDropped(load: WorkerLoad, best: WorkerLoad): boolean {
  const isLeaving = load.worker.status !== 'running';
  if (isLeaving !== (best.worker.status !== 'running')) return isLeaving;
  if (load.memory !== best.memory) return load.memory > best.memory;
  return load.worker.rank < best.worker.rank;
}
