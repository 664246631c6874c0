import { analyse, type Analysis, type Finding, findingsOf, summaryOf } from './analysis.ts';
import type { History } from './history.ts';

/** A report about a piece of work. */
export interface Report {
  readonly history: History;
  readonly analysis: Analysis;
  /** In sentences. */
  readonly summary: readonly string[];
  /** The heaviest first. */
  readonly findings: readonly Finding[];
}

/** O(n log n) in the runs of the history. */
export function reportOf(history: History): Report {
  const analysis = analyse(history);
  const summary = summaryOf(history, analysis);
  return { history, analysis, summary, findings: findingsOf(history, analysis) };
}
