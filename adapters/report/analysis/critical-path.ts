import type { Run } from '../history.ts';
import { timeOf, type TimeSpent, totalOf } from './time-spent.ts';

/** The chain of runs that the end of the work waited for: each needs the result of the one before it. */
export interface CriticalPath {
  /** Numbers of the runs, first to last. */
  readonly runs: readonly number[];
  /** From the moment the first of them could run to the end of the last one. */
  readonly lengthS: number;
  readonly time: TimeSpent;
  /** What the longest chain takes without any waiting: no number of workers makes it shorter. */
  readonly leastS: number;
}

/**
 * From the run that ended last back over the inputs that came last. A result that was there before the work began ends
 * the chain. O(runs)
 */
export function criticalPath(runs: readonly Run[]): CriticalPath {
  let last = -1;
  runs.forEach(({ finishedS }, number) => {
    if (last < 0 || finishedS > (runs[last]?.finishedS ?? 0)) last = number;
  });
  const chain: number[] = [];
  for (let number = last; number >= 0; number = runs[number]?.lastInput ?? -1) chain.push(number);
  chain.reverse();
  const members = chain.flatMap((number) => runs[number] ?? []);
  const time = totalOf(members);
  const lengthS = (members.at(-1)?.finishedS ?? 0) - (members[0]?.readyS ?? 0);
  return { runs: chain, lengthS, time, leastS: longestChainS(runs) };
}

/** An input is an earlier run than what needs it. */
function longestChainS(runs: readonly Run[]): number {
  const lengths = new Float64Array(runs.length);
  let longest = 0;
  runs.forEach(({ timings, lastInput }, number) => {
    const { runS, transferS, diskS, otherS } = timeOf(timings);
    const ownS = runS + transferS + diskS + otherS;
    const lengthS = ownS + (lastInput < number ? (lengths[lastInput] ?? 0) : 0);
    lengths[number] = lengthS;
    longest = Math.max(longest, lengthS);
  });
  return longest;
}
