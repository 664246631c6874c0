import { describe, expect, it } from 'vitest';
import { InMemoryTransport, transportConformance, VirtualClock } from 'yardmaster/testing';
import counting, { CountingTransport } from './counting.ts';

transportConformance(
  'the example of the guide to transports',
  () => {
    const clock = new VirtualClock();
    return {
      transport: counting.create({ clock }, {}),
      listenAddress: 'inmemory://node:0',
      vacantAddress: 'inmemory://vacant',
      until: (holds) => clock.runUntil(holds),
    };
  },
  { describe, it },
);

it('the example of the guide to transports wraps another transport', () => {
  const inner = new InMemoryTransport(new VirtualClock());
  expect(new CountingTransport(inner).scheme).toBe('inmemory');
});
