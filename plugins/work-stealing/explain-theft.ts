import type { DecisionCandidate, PluginDecision } from '../../core/api/index.ts';
import type { Load } from './loads.ts';
import type { Theft } from './theft.ts';

/** Puts a theft into words, before it is booked: where the task would wait, and for how long. */
export function explainTheft(theft: Theft, level: number): PluginDecision {
  const { task, victim, thief, computeS, victimTransferS, thiefTransferS } = theft;
  const there = perThread(victim) + victimTransferS;
  const here = perThread(thief) + thiefTransferS;
  return {
    kind: 'steal',
    key: task.key,
    outcome: thief.worker.address,
    rule:
      `asked for from ${victim.worker.address}, cost level ${level}: ${text(computeS)} of computation; ` +
      `${text(there)} of work per thread and transfers there, ${text(here)} here`,
    candidates: [candidate(thief), candidate(victim)],
    candidateCount: 2,
  };
}

function perThread({ seconds, threadCount }: Load): number {
  return seconds / threadCount;
}

function candidate({ worker, seconds, taskCount }: Load): DecisionCandidate {
  return { worker: worker.address, occupancyS: seconds, processingCount: taskCount };
}

function text(seconds: number): string {
  return `${Number(seconds.toPrecision(3))} s`;
}
