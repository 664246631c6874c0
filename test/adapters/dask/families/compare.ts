/** Compares what became of the same cases under two schedulers. */

/** A line of `families.py`: with a value, an error or a reason to skip. */
export interface Outcome {
  readonly family: string;
  readonly case: string;
  readonly seconds: number;
  /** Why the result differs on purpose. */
  readonly differs: string | null;
  readonly value?: unknown;
  /** Type and text. */
  readonly error?: readonly [string, string];
  readonly traceback?: string;
  readonly skipped?: string;
}

export type Verdict =
  | 'equal'
  | 'different'
  | 'only ours fails'
  | 'only stock fails'
  | 'both fail'
  | 'on purpose'
  | 'skipped';

export interface Comparison {
  /** `family/case`. */
  readonly name: string;
  readonly verdict: Verdict;
  readonly stock?: Outcome;
  readonly ours?: Outcome;
}

const LACKING: readonly [string, string] = ['NoResult', 'the script did not come to this case'];

/** Compares the cases of both, in the order of the first. */
export function compare(stock: readonly Outcome[], ours: readonly Outcome[]): Comparison[] {
  const stockOf = byName(stock);
  const oursOf = byName(ours);
  return [...new Set([...stockOf.keys(), ...oursOf.keys()])].map((name) => {
    const pair = { ...found('stock', stockOf.get(name)), ...found('ours', oursOf.get(name)) };
    return { name, verdict: judge(pair.stock, pair.ours), ...pair };
  });
}

function found(
  key: 'stock' | 'ours',
  outcome: Outcome | undefined,
): { stock?: Outcome; ours?: Outcome } {
  return outcome === undefined ? {} : { [key]: outcome };
}

function byName(outcomes: readonly Outcome[]): Map<string, Outcome> {
  return new Map(outcomes.map((outcome) => [`${outcome.family}/${outcome.case}`, outcome]));
}

/** Two equal errors are no equal results: the case itself has an error, or the library has. */
function judge(stock: Outcome | undefined, ours: Outcome | undefined): Verdict {
  if (stock?.skipped !== undefined || ours?.skipped !== undefined) return 'skipped';
  const failures = [errorOf(stock), errorOf(ours)];
  if (failures[0] !== undefined && failures[1] !== undefined) {
    return JSON.stringify(failures[0]) === JSON.stringify(failures[1]) ? 'both fail' : 'different';
  }
  const differs = stock?.differs ?? ours?.differs;
  if (typeof differs === 'string') return 'on purpose';
  if (failures[0] !== undefined) return 'only stock fails';
  if (failures[1] !== undefined) return 'only ours fails';
  return JSON.stringify(stock?.value) === JSON.stringify(ours?.value) ? 'equal' : 'different';
}

function errorOf(outcome: Outcome | undefined): readonly [string, string] | undefined {
  return outcome === undefined ? LACKING : outcome.error;
}

/** The cases of one release that count as passed, failed and skipped. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** A case that fails in the same way under both says nothing about our scheduler: it is skipped. */
export function count(comparisons: readonly Comparison[], counts: Counts): void {
  for (const { verdict } of comparisons) {
    if (verdict === 'equal' || verdict === 'on purpose') counts.passed++;
    else if (verdict === 'skipped' || verdict === 'both fail') counts.skipped++;
    else counts.failed++;
  }
}

/** One line in a table: what a case gave, shortened. */
export function shown(outcome: Outcome | undefined, width: number): string {
  const error = errorOf(outcome);
  const text =
    error === undefined
      ? (outcome?.skipped ?? JSON.stringify(outcome?.value ?? null))
      : `${error[0]}: ${error[1]}`;
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}
