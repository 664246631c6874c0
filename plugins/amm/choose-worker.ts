import type { ClusterView, Suggestion, TaskView, WorkerView } from '../../core/api/index.ts';

/** Copies that were accepted in this round, of one task. */
export interface Pending {
  readonly replicate: Set<WorkerView>;
  readonly drop: Set<WorkerView>;
}

/** One suggestion, and what it is judged by. */
export interface Question {
  readonly cluster: ClusterView;
  /** Bytes, with the effects of what was accepted in this round. */
  readonly workersMemory: ReadonlyMap<WorkerView, number>;
  readonly task: TaskView;
  readonly candidates: Suggestion['candidates'];
  readonly pending: Pending | undefined;
}

/**
 * The worker that receives one more copy: of the running candidates without one, the one with the
 * least memory. Undefined: refused. O(candidates).
 */
export function chooseRecipient(question: Question): WorkerView | undefined {
  const { cluster, workersMemory, task, candidates, pending } = question;
  if (task.state !== 'memory' || task.isActor) return undefined;
  let best: WorkerView | undefined;
  let bestMemory = Infinity;
  for (const worker of candidates ?? cluster.running) {
    if (!cluster.running.has(worker) || task.whoHas.has(worker)) continue;
    if (pending?.replicate.has(worker) === true) continue;
    const memory = workersMemory.get(worker) ?? 0;
    if (
      best !== undefined &&
      (memory > bestMemory || isTieLost(memory, bestMemory, worker, best))
    ) {
      continue;
    }
    best = worker;
    bestMemory = memory;
  }
  return best;
}

/**
 * The worker that drops its copy: of the candidates that hold one and do not need it for a task that
 * is processing there, one that is not running, else the one with the most memory. Undefined:
 * refused. O(candidates + waiters of the task).
 */
export function chooseDropper(question: Question): WorkerView | undefined {
  const { workersMemory, task, candidates, pending } = question;
  if (task.isActor || task.whoHas.size - (pending?.drop.size ?? 0) < 2) return undefined;
  const holders = [...new Set(candidates ?? task.whoHas)].filter(
    (worker) => task.whoHas.has(worker) && pending?.drop.has(worker) !== true,
  );
  if (holders.length === 0) return undefined;
  const busy = new Set(task.waiters.map((waiter) => waiter.processingOn));
  const free = holders.filter((worker) => !busy.has(worker));
  const [first] = free;
  if (first === undefined) return undefined;
  const chosen = free.reduce((best, worker) => {
    return isRatherDropped(worker, best, workersMemory) ? worker : best;
  }, first);
  // A holder that is leaving but busy will be wanted gone next: the last running copy stays until
  // then, or two policies would copy to and fro.
  const isOnlyRunning = free.length === 1 && chosen.status === 'running';
  const excluded = holders.filter((worker) => busy.has(worker));
  const areOthersLeaving = excluded.length > 0 && excluded.every(isNotRunning);
  return isOnlyRunning && areOthersLeaving ? undefined : chosen;
}

function isRatherDropped(
  worker: WorkerView,
  best: WorkerView,
  workersMemory: ReadonlyMap<WorkerView, number>,
): boolean {
  if (isNotRunning(worker) !== isNotRunning(best)) return isNotRunning(worker);
  const memory = workersMemory.get(worker) ?? 0;
  const bestMemory = workersMemory.get(best) ?? 0;
  return memory > bestMemory || (memory === bestMemory && worker.rank < best.rank);
}

function isTieLost(
  memory: number,
  bestMemory: number,
  worker: WorkerView,
  best: WorkerView,
): boolean {
  return memory === bestMemory && worker.rank > best.rank;
}

function isNotRunning(worker: WorkerView): boolean {
  return worker.status !== 'running';
}
