import { YardmasterError } from '../../core/api/index.ts';
import {
  ADDRESSES_CLAUSES,
  Bench,
  type Clauses,
  DATA_CLAUSES,
  DELIVERY_CLAUSES,
  ENDINGS_CLAUSES,
  FAULTS_CLAUSES,
  type TransportHarness,
  Unproven,
} from './conformance.ts';

export type { FaultProxy, TransportHarness } from './conformance.ts';

/** Each name is a sentence of the contract. */
const CLAUSES: Clauses = {
  ...DELIVERY_CLAUSES,
  ...DATA_CLAUSES,
  ...ENDINGS_CLAUSES,
  ...ADDRESSES_CLAUSES,
  ...FAULTS_CLAUSES,
};

/** The functions that register the tests: `describe` and `it` of vitest, jest, mocha or node:test. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  /** @param body - gets what the runner gives to tests, to skip a clause that cannot be proved */
  it(name: string, body: (this: unknown, ...given: unknown[]) => Promise<void>): unknown;
}

/**
 * Registers one test for each clause of the contract in `Transport` and `Connection`. The author of
 * a transport runs it in their project:
 *
 *     import { describe, it } from 'vitest';
 *     transportConformance('my-quic', () => ({ transport, listenAddress, vacantAddress }), { describe, it });
 *
 * @param makeHarness - called for each clause
 * @throws YardmasterError `ERR_CONFIG` when it is no function, or the runner is missing
 */
export function transportConformance(
  name: string,
  makeHarness: () => TransportHarness | Promise<TransportHarness>,
  runner: TestRunner,
): void {
  checkUse(makeHarness, runner);
  runner.describe(`${name} keeps the contract of a transport`, () => {
    for (const [clause, check] of Object.entries(CLAUSES)) {
      // Without named parameters: mocha would take the first one for a callback.
      runner.it(clause, async function (this: unknown, ...given: unknown[]) {
        const bench = new Bench(await makeHarness());
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

function checkUse(makeHarness: unknown, runner: Partial<TestRunner> | undefined): void {
  const isRunner = typeof runner?.describe === 'function' && typeof runner.it === 'function';
  if (isRunner && typeof makeHarness === 'function') return;
  throw new YardmasterError(
    'ERR_CONFIG',
    `transportConformance wants ${
      isRunner ? 'a function that makes the harness' : 'the functions of a test runner'
    }: transportConformance('quic', () => ({ transport, listenAddress, vacantAddress }), { describe, it })`,
  );
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
