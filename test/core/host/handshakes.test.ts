import { expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import type { Connection, IncomingLimits } from '../../../core/api/index.ts';
import { Handshakes } from '../../../core/host/handshakes.ts';

class Accepted {
  limits: IncomingLimits | undefined;
  reason: Error | undefined;
  readonly connection = {
    peerAddress: 'tcp://peer:1',
    limitIncoming: (limits: IncomingLimits | undefined) => {
      this.limits = limits;
    },
    abort: (reason: Error) => {
      this.reason = reason;
    },
  } as unknown as Connection;
}

it('a peer that does not introduce itself within five seconds is disconnected', () => {
  const clock = new VirtualClock();
  const handshakes = new Handshakes(clock);
  const [silent, polite] = [new Accepted(), new Accepted()];
  handshakes.begin(silent.connection);
  handshakes.begin(polite.connection);
  expect(polite.limits?.frameBytesMax).toBe(64 * 1024);
  handshakes.succeed(polite.connection);
  clock.advance(5100);
  expect(silent.reason?.message).toContain('did not introduce itself within 5000 ms');
  expect(polite.reason).toBeUndefined();
  expect(polite.limits).toBeUndefined();
  expect(handshakes.count).toBe(0);
});

it('of very many peers that do not introduce themselves, the oldest is disconnected', () => {
  const handshakes = new Handshakes(new VirtualClock());
  const all = Array.from({ length: 1025 }, () => new Accepted());
  for (const [index, { connection }] of all.entries()) {
    Object.assign(connection, { peerAddress: `tcp://host-${index}:1` });
  }
  for (const { connection } of all) handshakes.begin(connection);
  expect(all.filter(({ reason }) => reason !== undefined)).toEqual([all[0]]);
  expect(handshakes.count).toBe(1024);
});

it('peers of one host that do not introduce themselves leave room for other hosts', () => {
  const handshakes = new Handshakes(new VirtualClock());
  const other = new Accepted();
  Object.assign(other.connection, { peerAddress: 'tcp://other:1' });
  handshakes.begin(other.connection);
  const flood = Array.from({ length: 2000 }, () => new Accepted());
  for (const { connection } of flood) handshakes.begin(connection);
  expect(handshakes.count).toBe(1024);
  expect(other.reason).toBeUndefined();
  expect(flood[0]!.reason?.message).toContain('was the oldest of its host');
});
