import { describe, it } from 'vitest';

import { SystemClock, VirtualClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport, transportConformance } from '../../../adapters/testing/index.ts';
import { CLAUSE_MS, tcpHarness } from './harness.ts';

const runner = { describe, it };

transportConformance('tcp over IPv4', () => tcpHarness(), runner);

for (const delayMs of [0, 5]) {
  transportConformance(
    `inmemory with a delay of ${delayMs} ms in virtual time`,
    () => {
      const clock = new VirtualClock();
      return {
        transport: new InMemoryTransport(clock, { delayMs }),
        small: {
          transport: new InMemoryTransport(clock, { delayMs, frameBytesMax: 4096 }),
          frameBytesMax: 4096,
        },
        listenAddress: 'inmemory://node:0',
        vacantAddress: 'inmemory://vacant:1',
        until: (predicate) => clock.runUntil(predicate),
      };
    },
    runner,
  );
}

/** What is not copied has no bytes and does not change on its way. */
const CLAUSES_OF_COPIES = [
  'buffered bytes are counted, and drained resolves when they have left',
  'undefined fields are dropped, and a Buffer arrives as Uint8Array',
  'messages are copied: changing one after it was sent changes nothing',
];

transportConformance(
  'inmemory by reference',
  () => ({
    transport: new InMemoryTransport(new SystemClock(), { byReference: true }),
    listenAddress: 'inmemory://:0',
    vacantAddress: 'inmemory://vacant',
    clauseMs: CLAUSE_MS,
  }),
  {
    describe,
    it: (name, body) => {
      if (!CLAUSES_OF_COPIES.includes(name)) it(name, body);
    },
  },
);

transportConformance(
  'inmemory in real time',
  () => ({
    transport: new InMemoryTransport(new SystemClock(), { delayMs: 1 }),
    listenAddress: 'inmemory://:0',
    vacantAddress: 'inmemory://vacant',
    clauseMs: CLAUSE_MS,
  }),
  runner,
);
