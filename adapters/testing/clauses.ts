import { asError, YardmasterError } from '../../core/api/index.ts';

/** The functions that register the tests: `describe` and `it` of vitest, jest, mocha or node:test. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  /** @param body - gets what the runner gives to tests, to skip a clause that cannot be proved */
  it(name: string, body: (this: unknown, ...given: unknown[]) => Promise<void>): unknown;
}

/** Thrown by a clause that there is nothing to prove with: it is skipped, with this reason. */
export class Unproven extends Error {
  override readonly name = 'Unproven';
}

/** Clauses of a contract: a name is a sentence, its body the proof. */
export type Clauses<Bench> = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

/** The tests of a contract. */
export interface Suite<Harness, Bench> {
  /** The function that authors call, with its arguments: `transportConformance('quic', () => ({ transport }), { describe, it })`. */
  readonly usage: string;
  /** `a transport`. */
  readonly what: string;
  readonly clauses: Clauses<Bench>;
  readonly benchOf: (harness: Harness) => Bench;
}

/**
 * Registers one test for each clause, each with a harness of its own.
 * @throws YardmasterError `ERR_CONFIG` when `makeHarness` is no function, or the runner is missing
 */
export function registerClauses<Harness, Bench extends { close(): Promise<void> }>(
  { usage, what, clauses, benchOf }: Suite<Harness, Bench>,
  name: string,
  makeHarness: () => Harness | Promise<Harness>,
  runner: TestRunner,
): void {
  checkUse(usage, makeHarness, runner);
  runner.describe(`${name} keeps the contract of ${what}`, () => {
    for (const [clause, check] of Object.entries(clauses)) {
      // Without named parameters: mocha would take the first one for a callback.
      runner.it(clause, async function (this: unknown, ...given: unknown[]) {
        const bench = benchOf(await makeHarness());
        let found: Error | undefined;
        try {
          await check(bench);
        } catch (error) {
          found = asError(error);
        }
        try {
          await bench.close();
        } catch (error) {
          found ??= asError(error); // What the clause itself found says more.
        }
        if (found instanceof Unproven) skip([given[0], this], found.message);
        else if (found !== undefined) throw found;
      });
    }
  });
}

/** Has the runner skip the test: vitest and node:test by what they give to it, mocha by its `this`. */
function skip(contexts: readonly unknown[], why: string): void {
  for (const context of contexts) {
    const { skip: skipTest } = (context ?? {}) as { skip?: (why: string) => unknown };
    if (typeof skipTest !== 'function') continue;
    skipTest.call(context, why);
    return;
  }
}

function checkUse(
  usage: string,
  makeHarness: unknown,
  runner: Partial<TestRunner> | undefined,
): void {
  const isRunner = typeof runner?.describe === 'function' && typeof runner.it === 'function';
  if (isRunner && typeof makeHarness === 'function') return;
  const [call = ''] = usage.split('(');
  throw new YardmasterError(
    'ERR_CONFIG',
    `${call} wants ${
      isRunner ? 'a function that makes the harness' : 'the functions of a test runner'
    }: ${usage}`,
  );
}
