import { bytes, seconds } from '../../dashboard/page/format.ts';
import type { ReportFigures } from './figures.ts';

interface Observed {
  readonly figures: ReportFigures;
  readonly startS: number;
  readonly stopS: number;
  readonly workers: readonly { readonly threads: number }[];
}

/** The figures in a few sentences, with what can be done about them. */
export function findingsIn({ figures, startS, stopS, workers }: Observed): readonly string[] {
  const { all, byPrefix } = figures;
  const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
  const availableS = threads * (stopS - startS);
  if (all.tasks === 0) return ['No task ran on a worker of Dask in this time.'];
  return [
    ...busyness(all.computeS, availableS, threads),
    ...longest(byPrefix, all.computeS),
    ...transfers(figures),
    ...short(byPrefix),
    ...(all.failed > 0 ? [`${all.failed} tasks failed.`] : []),
  ];
}

function* busyness(computeS: number, availableS: number, threads: number): Iterable<string> {
  if (availableS <= 0) return;
  const percent = Math.min(100, Math.round((100 * computeS) / availableS));
  const advice =
    percent >= 60
      ? ''
      : ' Gaps in the task stream show when threads had nothing to do: too few tasks at a time, one long task, or transfers.';
  yield `The ${threads} threads computed in ${percent} % of the time.${advice}`;
}

function* longest(byPrefix: ReportFigures['byPrefix'], computeS: number): Iterable<string> {
  const [first] = [...byPrefix].toSorted(([, a], [, b]) => b.computeS - a.computeS);
  if (first === undefined || computeS <= 0) return;
  const [name, sums] = first;
  const percent = Math.round((100 * sums.computeS) / computeS);
  yield `${name} took ${percent} % of the computing time: ${sums.tasks} tasks of ${seconds(sums.computeS / sums.tasks)} on average, ${seconds(sums.longestS)} at most.`;
}

function* transfers({ all, byPrefix }: ReportFigures): Iterable<string> {
  const percent = Math.round((100 * all.transferS) / Math.max(1e-9, all.computeS + all.transferS));
  if (percent >= 10) {
    const [most] = [...byPrefix].toSorted(([, a], [, b]) => b.transferS - a.transferS);
    yield `Tasks waited ${seconds(all.transferS)} for inputs from other workers (${percent} % of computing and transfers), most of it before ${most?.[0] ?? ''}: larger tasks near their inputs would move less.`;
  }
  if (all.diskS > 0.01 * all.computeS) {
    yield `Results of ${bytes(all.nbytes)} did not always fit into memory: reading and writing them took ${seconds(all.diskS)}.`;
  }
}

function* short(byPrefix: ReportFigures['byPrefix']): Iterable<string> {
  for (const [name, { tasks, computeS }] of byPrefix) {
    if (tasks < 1000 || computeS / tasks > 0.001) continue;
    yield `${tasks} tasks of ${name} took ${seconds(computeS / tasks)} each, less than it takes to hand out one: make them larger.`;
    return;
  }
}
