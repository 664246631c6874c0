import type { Suggestion, TaskView, WorkerView } from '../../core/api/index.ts';
import type { WorkerList } from './worker-list.ts';
import { isEmptier, isFree, type WorkerLoad, type WorkerLoads } from './worker-loads.ts';

type Candidates = Suggestion['candidates'];

/**
 * The worker that receives one more copy: of the running candidates without one, the one with the
 * least memory. Undefined: refused. O(1) without candidates as a rule, else O(candidates).
 */
export function chooseRecipient(
  loads: WorkerLoads,
  running: { has(worker: WorkerView): boolean },
  { task, candidates }: Suggestion,
  coming: WorkerList,
): WorkerLoad | undefined {
  if (task.state !== 'memory' || task.isActor) return undefined;
  if (candidates === undefined) return loads.emptiest(task, coming);
  let best: WorkerLoad | undefined;
  for (const worker of candidates) {
    const load = loads.of(worker);
    if (load === undefined || !running.has(worker) || !isFree(worker, task, coming)) continue;
    if (best === undefined || isEmptier(load, best)) best = load;
  }
  return best;
}

/**
 * The worker that drops its copy: of the candidates that hold one and do not need it for a task that
 * is processing there, one that is not running, else the one with the most memory. Undefined:
 * refused. O(candidates + waiters of the task).
 */
export function chooseDropper(
  loads: WorkerLoads,
  { task, candidates }: Suggestion,
  going: WorkerList,
): WorkerLoad | undefined {
  if (task.isActor || task.whoHas.size - going.size < 2) return undefined;
  const readers = readersOf(task);
  let best: WorkerLoad | undefined;
  let hasOtherFree = false;
  let excluded = 0;
  let excludedRunning = 0;
  for (const worker of holdersAmong(task, candidates)) {
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
  // A holder that is leaving but busy will be wanted gone next: the last running copy stays until
  // then, or two policies would copy to and fro.
  const isOnlyFree = !hasOtherFree && best?.worker.status === 'running';
  return isOnlyFree && excluded > 0 && excludedRunning === 0 ? undefined : best;
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

function holdersAmong(task: TaskView, candidates: Candidates): Iterable<WorkerView> {
  if (candidates === undefined) return task.whoHas.items;
  const holders = holding(task, [...candidates]);
  return holders.length > 1 ? new Set(holders) : holders;
}

function holding(task: TaskView, candidates: readonly WorkerView[]): WorkerView[] {
  return candidates.filter((worker) => worker.hasWhat.has(task));
}

/** Those that are not running go first, then those with the most memory, then the lowest rank. */
function isRatherDropped(load: WorkerLoad, best: WorkerLoad): boolean {
  const isLeaving = load.worker.status !== 'running';
  if (isLeaving !== (best.worker.status !== 'running')) return isLeaving;
  if (load.memory !== best.memory) return load.memory > best.memory;
  return load.worker.rank < best.worker.rank;
}
