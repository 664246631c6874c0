import { performance } from 'node:perf_hooks';
import { type Answer, type Corpus, type Question, singlePass } from '../../demo/index.ts';
import type { DemoStats } from './stats.ts';

/** What the cluster came to, and what it took. */
export interface Outcome {
  readonly answer: Answer;
  readonly digests: readonly string[];
  readonly taskCount: number;
  readonly seconds: number;
}

const SHOWN_DOCUMENTS = 5;

/**
 * What was found, and what it took, in lines.
 * @param stats - undefined: the scheduler in which they were collected is gone
 */
export function outcomeLines(
  { answer, taskCount, seconds }: Outcome,
  stats: Pick<DemoStats, 'movedBytes' | 'peakBytes'> | undefined,
  { paths }: Corpus,
  query: string,
): string[] {
  const { documents, terms } = answer;
  return [
    '',
    `The most characteristic terms of the ${documents.length} documents nearest to "${query}":`,
    ...terms.map(({ item, weight }, index) => ranked(index, weight, item)),
    '',
    'The nearest documents:',
    ...documents
      .slice(0, SHOWN_DOCUMENTS)
      .map(({ item, weight }, index) => ranked(index, weight, paths[item] ?? '')),
    '',
    `${taskCount} tasks in ${seconds.toFixed(1)} s: ${(taskCount / seconds).toFixed(0)} tasks per second`,
    ...(stats === undefined ? [] : memoryLines(stats)),
  ];
}

function memoryLines({
  movedBytes,
  peakBytes,
}: Pick<DemoStats, 'movedBytes' | 'peakBytes'>): string[] {
  const peaks = [...peakBytes].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${mebibytes(movedBytes)} moved between workers`,
    ...peaks.map(([name, bytes]) => `${mebibytes(bytes)} at most in the memory of ${name}`),
  ];
}

/** Compares the whole index and the answer with what a plain pass comes to. */
export function checkOutcome(
  { answer, digests }: Outcome,
  { paths }: Corpus,
  question: Question,
  ranges: number,
): { readonly isPassed: boolean; readonly line: string } {
  const startMs = performance.now();
  const plain = singlePass(paths, question, ranges);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const isSameIndex = JSON.stringify(plain.digests) === JSON.stringify(digests);
  const isSameAnswer = JSON.stringify(plain.answer) === JSON.stringify(answer);
  const isPassed = isSameIndex && isSameAnswer;
  const what = isSameIndex ? 'answer' : 'index';
  const line = isPassed
    ? `Check      passed: one thread, in ${seconds} s, comes to the same index of ${plain.termCount} terms and to the same answer`
    : `Check      FAILED: the ${what} is not the one that a single thread comes to`;
  return { isPassed, line };
}

function ranked(index: number, weight: number, what: string): string {
  return `${String(index + 1).padStart(4)}  ${weight.toFixed(2).padStart(8)}  ${what}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`.padStart(10);
}
