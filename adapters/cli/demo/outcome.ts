import { relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { type Corpus, type NearDuplicates, singlePass } from '../../demo/index.ts';
import type { DemoStats } from './stats.ts';

/** What the cluster came to, and what it took. */
export interface Outcome {
  readonly answer: NearDuplicates;
  readonly taskCount: number;
  readonly seconds: number;
}

const SHOWN_FAMILIES = 5;

/**
 * What was found, and what it took, in lines.
 * @param stats - undefined: the scheduler in which they were collected is gone
 */
export function outcomeLines(
  { answer: { compared, families }, taskCount, seconds }: Outcome,
  stats: Pick<DemoStats, 'movedBytes' | 'peakBytes' | 'tasksAgain'> | undefined,
  { documents, folder }: Corpus,
): string[] {
  const repeating = families.reduce((sum, family) => sum + family.documents.length, 0);
  const nameOf = (number: number | undefined): string =>
    relative(folder, documents[number ?? 0]?.path ?? '');
  return [
    '',
    `${repeating} of ${compared} texts nearly repeat another one. The largest of ${families.length} families:`,
    ...families
      .slice(0, SHOWN_FAMILIES)
      .flatMap(({ documents: members, similarity }) => [
        `${String(members.length).padStart(5)} texts, at least ${Math.floor(100 * similarity)} % alike`,
        `         ${nameOf(members[0])}`,
        `         ${nameOf(members.at(-1))}`,
      ]),
    '',
    `${taskCount} tasks in ${seconds.toFixed(1)} s: ${(taskCount / seconds).toFixed(0)} tasks per second`,
    ...(stats === undefined ? [] : statsLines(stats)),
  ];
}

function statsLines({
  movedBytes,
  peakBytes,
  tasksAgain,
}: Pick<DemoStats, 'movedBytes' | 'peakBytes' | 'tasksAgain'>): string[] {
  const peaks = [...peakBytes].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${String(tasksAgain).padStart(6)} tasks computed once more`,
    `${mebibytes(movedBytes)} moved between workers`,
    ...peaks.map(([name, bytes]) => `${mebibytes(bytes)} at most in the memory of ${name}`),
  ];
}

/** Compares the families and all fingerprints with what a plain pass comes to. */
export function checkOutcome(
  { answer, seconds }: Outcome,
  { documents }: Corpus,
): { readonly isPassed: boolean; readonly line: string } {
  const startMs = performance.now();
  const plain = singlePass(documents);
  const plainSeconds = (performance.now() - startMs) / 1000;
  const isPassed = JSON.stringify(plain) === JSON.stringify(answer);
  const what = plain.digest === answer.digest ? 'families are' : 'fingerprints are';
  const line = isPassed
    ? `Check      passed: one thread finds the same fingerprints and families in ${plainSeconds.toFixed(1)} s, the cluster took ${seconds.toFixed(1)} s`
    : `Check      FAILED: the ${what} not those that a single thread comes to`;
  return { isPassed, line };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`.padStart(10);
}
