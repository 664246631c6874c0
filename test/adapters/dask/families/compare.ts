/** Compares what became of the same cases under two schedulers. */

/** A line of `families.py`: with a value, an error or a reason to skip. */
export interface Outcome {
  readonly family: string;
  readonly case: string;
  readonly seconds: number;
  /** Why the schedulers differ here, and the value that ours has; without `ours`: the stock scheduler fails. */
  readonly mark: { readonly why: string; readonly ours?: unknown } | null;
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

/**
 * Two equal errors are no equal results: the case itself has an error, or the library has. A mark excuses no
 * failure of ours, and no value of ours but the one that it names.
 */
function judge(stock: Outcome | undefined, ours: Outcome | undefined): Verdict {
  if (stock?.skipped !== undefined && ours?.skipped !== undefined) return 'skipped';
  const [failure, ourFailure] = [errorOf(stock), errorOf(ours)];
  if (ourFailure !== undefined) {
    if (failure === undefined) return 'only ours fails';
    return same(failure, ourFailure) ? 'both fail' : 'different';
  }
  const mark = ours?.mark ?? stock?.mark;
  if (failure === undefined && same(outcomeOf(stock), outcomeOf(ours))) return 'equal';
  if (mark?.ours !== undefined) return same(mark.ours, ours?.value) ? 'on purpose' : 'different';
  if (failure === undefined) return 'different';
  return mark ? 'on purpose' : 'only stock fails';
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function outcomeOf(outcome: Outcome | undefined): unknown {
  return outcome?.skipped ?? [outcome?.value];
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

/**
 * A case that fails in the same way under both says nothing about our scheduler: it is skipped. So is one that
 * fails under the stock scheduler alone: there is nothing to compare with.
 */
export function count(comparisons: readonly Comparison[], counts: Counts): void {
  for (const { verdict } of comparisons) {
    if (verdict === 'equal' || verdict === 'on purpose') counts.passed++;
    else if (isFailure(verdict)) counts.failed++;
    else counts.skipped++;
  }
}

/** Whether a verdict says that our scheduler did something else than it should. */
export function isFailure(verdict: Verdict): boolean {
  return verdict === 'different' || verdict === 'only ours fails';
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
