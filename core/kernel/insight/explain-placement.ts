/** Puts a placement into words, with the candidates as they were at that moment. */
import { CANDIDATES_MAX, type Decision, type DecisionCandidate } from '../../api/insight.ts';
import type { WorkerSelection } from '../../api/policies.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import {
  candidatesFor,
  isUnconstrained,
  selectionPlacesRootish,
  slotCandidates,
} from '../placement/placement.ts';
import { isLoose, validWorkers } from '../placement/restrictions.ts';
import type { KernelScope } from '../scope.ts';
import { unsatisfied } from '../placement/describe-restrictions.ts';
import { missingBytes } from './missing-bytes.ts';
import type { PlacementEvent } from './watcher.ts';

interface Explanation {
  readonly rule: string;
  readonly workers: readonly WorkerState[];
}

/** Called right after the decision, when the candidates are still what they were. */
export function explainPlacement(scope: KernelScope, event: PlacementEvent): Decision {
  const { task, placement, isRootish } = event;
  const { ports, stimulusId, nowMs: atMs } = scope;
  const isQueuing = isRootish && !isPlacedBySelection(scope, event);
  const { rule, workers } = isRootish
    ? explainQueuing(scope, event)
    : explainSelection(scope, event);
  const outcome = typeof placement === 'string' ? placement : placement.address;
  const scorer = isQueuing ? undefined : ports.workerSelection.policy;
  const candidates = workers.map((worker) => describe(scope, task, worker, scorer));
  return {
    kind: 'placement',
    key: task.key,
    policy: (isQueuing ? ports.queuing : ports.workerSelection).name,
    outcome,
    rule,
    candidates: candidates
      .sort((a, b) => Number(b.worker === outcome) - Number(a.worker === outcome) || byScore(a, b))
      .slice(0, CANDIDATES_MAX),
    candidateCount: candidates.length,
    stimulusId,
    atMs,
  };
}

/** Whether the worker selection policy was asked about a root-ish task: there was an open slot. */
function isPlacedBySelection(
  { cluster, ports }: KernelScope,
  { placement }: PlacementEvent,
): boolean {
  return selectionPlacesRootish(ports) && (placement !== 'queued' || cluster.openSlots.size > 0);
}

function explainQueuing(scope: KernelScope, event: PlacementEvent): Explanation {
  const { cluster } = scope;
  const { task, placement } = event;
  const workers = cluster.openSlots.sorted();
  const group = `it is root-ish (group ${task.group.name}, ${task.group.size} tasks)`;
  if (placement === 'queued' || placement === 'no-worker') {
    const rule =
      cluster.running.size === 0
        ? `${group}, and no worker is running`
        : workers.length === 0
          ? `${group}, and no worker has an open slot: it waits in the scheduler`
          : `${group}, and the policy holds it back`;
    return { rule, workers };
  }
  if (isPlacedBySelection(scope, event)) {
    const candidates = slotCandidates(scope, task);
    return {
      rule: `${group}: chosen by worker selection among ${candidates.length} workers with an open slot`,
      workers: candidates,
    };
  }
  if (workers[0] === placement) {
    return { rule: `${group}: the least busy worker with an open slot`, workers };
  }
  return { rule: `${group}: chosen by the policy`, workers };
}

function explainSelection(scope: KernelScope, { task, placement }: PlacementEvent): Explanation {
  const { cluster, ports } = scope;
  const { policy } = ports.workerSelection;
  if (cluster.running.size === 0) return { rule: 'no worker is running', workers: [] };
  const valid = validWorkers(cluster, task);
  if (valid?.size === 0 && !isLoose(cluster, task)) {
    return { rule: unsatisfied(cluster, task), workers: [] };
  }
  if (isUnconstrained(scope, task, valid)) {
    const isIdle = cluster.idle.size > 0;
    const workers = isIdle ? [...cluster.idle] : [...cluster.running];
    const pool = isIdle ? `${workers.length} idle workers` : `all workers, none of which is idle`;
    return { rule: `no inputs and no restrictions: chosen from ${pool}`, workers };
  }
  const workers = candidatesFor(scope, task, valid);
  if (placement === 'no-worker') {
    return { rule: `the policy admits the task on none of ${workers.length} candidates`, workers };
  }
  const among = amongWhom(task, workers.length, valid !== undefined);
  if (workers.length === 1) return { rule: `the only candidate: ${among}`, workers };
  if (policy.select !== undefined) return { rule: `chosen by the policy ${among}`, workers };
  return { rule: `${scoreRule(scope, task, placement as WorkerState, workers)} ${among}`, workers };
}

function amongWhom(task: TaskState, count: number, isRestricted: boolean): string {
  const holders = task.dependencies.length > 0 && !task.isActor ? ' that hold inputs' : '';
  const restricted = isRestricted ? ' and satisfy its restrictions' : '';
  return `among ${count} worker${count === 1 ? '' : 's'}${holders}${restricted}`;
}

/** Which step of the fixed rule distinguished the chosen worker from the others. */
function scoreRule(
  scope: KernelScope,
  task: TaskState,
  chosen: WorkerState,
  workers: readonly WorkerState[],
): string {
  const { policy } = scope.ports.workerSelection;
  const scoreOf = (worker: WorkerState): number | undefined =>
    policy.score?.(task, worker, scope.inputs.missingBytes(worker), scope.cluster);
  const best = scoreOf(chosen);
  const equals = workers.filter((worker) => worker !== chosen && scoreOf(worker) === best);
  if (task.isActor) return 'fewest actors, then lowest score,';
  if (equals.length === 0) return 'lowest score';
  if (equals.every((worker) => worker.nbytes > chosen.nbytes)) {
    return `lowest score, and of ${equals.length + 1} equals the fewest stored bytes,`;
  }
  return `lowest score, and of ${equals.length + 1} equals the first,`;
}

function describe(
  scope: KernelScope,
  task: TaskState,
  worker: WorkerState,
  scorer: WorkerSelection | undefined,
): DecisionCandidate {
  const { cluster } = scope;
  const missing = missingBytes(cluster, task, worker);
  const score = scorer?.score?.(task, worker, scope.inputs.missingBytes(worker), cluster);
  return {
    worker: worker.address,
    ...(score === undefined ? {} : { score }),
    ...(task.dependencies.length === 0 ? {} : { missingBytes: missing }),
    occupancyS: worker.occupancyS,
    processingCount: worker.processing.size,
    ...(worker.slotLimit === Infinity ? {} : { openSlots: worker.openSlots }),
  };
}

function byScore(a: DecisionCandidate, b: DecisionCandidate): number {
  return (a.score ?? 0) - (b.score ?? 0);
}
