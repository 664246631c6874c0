import type { DecisionCandidate, PluginDecision, Theft, WorkerLoad } from '../../core/api/index.ts';

/**
 * Puts a theft into words, before the loads change: where the task would wait, and for how long.
 * @param policy - the name of the stealing policy
 */
export function explainTheft(theft: Theft, level: number, policy: string): PluginDecision {
  const { task, victim, thief, computeS, victimTransferS, thiefTransferS } = theft;
  const there = victim.perThreadS + victimTransferS;
  const here = thief.perThreadS + thiefTransferS;
  return {
    kind: 'steal',
    policy,
    key: task.key,
    outcome: thief.worker.address,
    rule:
      `asked for from ${victim.worker.address}, cost level ${level}: ${text(computeS)} of computation; ` +
      `${text(there)} of work per thread and transfers there, ${text(here)} here`,
    candidates: [candidate(thief), candidate(victim)],
    candidateCount: 2,
  };
}

function candidate({ worker, workS, taskCount }: WorkerLoad): DecisionCandidate {
  return { worker: worker.address, occupancyS: workS, processingCount: taskCount };
}

function text(seconds: number): string {
  return `${Number(seconds.toPrecision(3))} s`;
}
