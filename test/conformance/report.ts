/** One case of a part: passed, or what was different. */
export interface CaseResult {
  readonly id: string;
  /** Undefined when the case passed. */
  readonly failure?: string;
}

/** A part of the suite, run on a folder of cases. */
export interface PartResult {
  readonly part: string;
  readonly cases: readonly CaseResult[];
  /** Why the part, or some of it, was not run. */
  readonly skipped?: string;
  /** What else there is to say, below the line of the part. */
  readonly notes?: readonly string[];
}

/** Failures of one part that are shown. */
const FAILURES_SHOWN = 10;

/** Prints a line per part, the first failures of each, and the closing line. Returns the exit code. */
export function printReport(parts: readonly PartResult[], print: (line: string) => void): number {
  let passed = 0;
  let failed = 0;
  for (const { part, cases, skipped, notes = [] } of parts) {
    const failures = cases.filter((result) => result.failure !== undefined);
    passed += cases.length - failures.length;
    failed += failures.length;
    const note = skipped === undefined ? '' : ` (${skipped})`;
    print(`${part}: ${cases.length - failures.length} of ${cases.length} cases pass${note}`);
    for (const { id, failure } of failures.slice(0, FAILURES_SHOWN))
      print(`  ${id}: ${failure ?? ''}`);
    const hidden = failures.length - FAILURES_SHOWN;
    if (hidden > 0) print(`  … and ${hidden} more`);
    for (const line of notes) print(`  ${line}`);
  }
  print(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}
