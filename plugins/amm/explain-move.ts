import {
  CANDIDATES_MAX,
  type DecisionCandidate,
  type PluginDecision,
  type RefusalReason,
  type Suggestion,
  type WorkerView,
} from '../../core/api/index.ts';
import { refusalText } from './round-tally.ts';
import type { WorkerLoad, WorkerLoads } from './worker-loads.ts';

/** Puts an accepted suggestion into words, before it is booked. O(workers). */
export function explainMove(
  { op, task, candidates }: Suggestion,
  chosen: WorkerLoad,
  loads: WorkerLoads,
): PluginDecision {
  const isCopy = op === 'replicate';
  const named = candidates === undefined ? undefined : new Set<WorkerView>(candidates);
  const eligible = [...loads.all].filter(({ worker }) => {
    if (named?.has(worker) === false) return false;
    return isCopy
      ? worker.status === 'running' && !worker.hasWhat.has(task)
      : worker.hasWhat.has(task);
  });
  const among = `of ${eligible.length} ${named === undefined ? 'workers' : 'named workers'}`;
  // As they were chosen: the emptiest receives, the fullest drops.
  const sign = isCopy ? 1 : -1;
  eligible.sort(
    (a, b) =>
      Number(b === chosen) - Number(a === chosen) ||
      sign * (a.memory - b.memory) ||
      a.worker.rank - b.worker.rank,
  );
  return {
    kind: op,
    key: task.key,
    outcome: chosen.worker.address,
    rule: isCopy
      ? `one more copy: the least memory ${among} without one`
      : `one copy less: the most memory ${among} that can do without`,
    candidates: eligible.slice(0, CANDIDATES_MAX).map(candidate),
    candidateCount: eligible.length,
  };
}

/** Puts a refusal into words. */
export function explainRefusal({ op, task }: Suggestion, reason: RefusalReason): PluginDecision {
  return {
    kind: op,
    key: task.key,
    outcome: 'refused',
    rule: refusalText(reason),
    candidates: [],
    candidateCount: 0,
  };
}

function candidate({ worker, memory }: WorkerLoad): DecisionCandidate {
  return {
    worker: worker.address,
    memoryBytes: memory,
    occupancyS: worker.occupancyS,
    processingCount: worker.processing.size,
  };
}
