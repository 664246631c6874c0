import { describe, it } from 'vitest';

import { SystemClock, VirtualClock } from '../../adapters/clock/index.ts';
import { InMemoryTransport, transportConformance } from '../../adapters/testing/index.ts';
import { TcpTransport } from '../../adapters/transport-tcp/index.ts';

const runner = { describe, it };

transportConformance(
  'tcp over IPv4',
  () => ({
    transport: new TcpTransport(new SystemClock()),
    listenAddress: 'tcp://127.0.0.1:0',
    vacantAddress: 'tcp://127.0.0.1:1',
  }),
  runner,
);

for (const delayMs of [0, 5]) {
  transportConformance(
    `inmemory with a delay of ${delayMs} ms in virtual time`,
    () => {
      const clock = new VirtualClock();
      return {
        transport: new InMemoryTransport(clock, { delayMs }),
        listenAddress: 'inmemory://node:0',
        vacantAddress: 'inmemory://nobody:1',
        until: (predicate) => clock.runUntil(predicate),
      };
    },
    runner,
  );
}

transportConformance(
  'inmemory in real time',
  () => ({
    transport: new InMemoryTransport(new SystemClock(), { delayMs: 1 }),
    listenAddress: 'inmemory://:0',
    vacantAddress: 'inmemory://nobody',
  }),
  runner,
);
