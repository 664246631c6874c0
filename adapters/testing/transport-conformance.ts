import { registerClauses, type TestRunner } from './clauses.ts';
import {
  ADDRESSES_CLAUSES,
  Bench,
  DATA_CLAUSES,
  DELIVERY_CLAUSES,
  ENDINGS_CLAUSES,
  FAULTS_CLAUSES,
  type TransportHarness,
} from './transport-clauses.ts';

export type { FaultProxy, TransportHarness } from './transport-clauses.ts';

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
  registerClauses(SUITE, name, makeHarness, runner);
}

const SUITE = {
  usage:
    "transportConformance('quic', () => ({ transport, listenAddress, vacantAddress }), { describe, it })",
  what: 'a transport',
  clauses: {
    ...DELIVERY_CLAUSES,
    ...DATA_CLAUSES,
    ...ENDINGS_CLAUSES,
    ...ADDRESSES_CLAUSES,
    ...FAULTS_CLAUSES,
  },
  benchOf: (harness: TransportHarness) => new Bench(harness),
};
