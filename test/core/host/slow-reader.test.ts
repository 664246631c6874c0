import { expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import type { Connection, WireMessage } from '../../../core/api/index.ts';
import { SlowReader } from '../../../core/host/sending.ts';

const MIB = 1024 * 1024;

/** A client that asks for 40 MiB with each message, and reads when the test says. */
class Reader {
  readonly clock = new VirtualClock();
  readonly handled: WireMessage[] = [];
  readonly holds: boolean[] = [];
  reason: Error | undefined;
  private buffered = 0;
  private drain = (): void => undefined;
  private readonly connection = {
    peerAddress: 'tcp://slow:1',
    holdIncoming: (isHeld: boolean) => void this.holds.push(isHeld),
    drained: () => new Promise<void>((resolve) => (this.drain = resolve)),
    abort: (reason: Error) => void (this.reason = reason),
  };
  readonly slow: SlowReader;

  constructor() {
    Object.defineProperty(this.connection, 'bufferedBytes', { get: () => this.buffered });
    const connection = this.connection as unknown as Connection;
    this.slow = new SlowReader(connection, this.clock, (message) => {
      this.handled.push(message);
      this.buffered += 40 * MIB;
    });
  }

  async read(): Promise<void> {
    this.buffered = 0;
    this.drain();
    await Promise.resolve();
    await Promise.resolve();
  }
}

const asks = (count: number): WireMessage[] => Array.from({ length: count }, (_, id) => ({ id }));

it('a client that reads nothing is answered until 64 MiB wait for it, and then not read any more', async () => {
  const reader = new Reader();
  reader.slow.take(asks(5));
  expect([reader.handled.length, reader.holds]).toEqual([2, [true]]);
  await reader.read();
  expect([reader.handled.length, reader.holds]).toEqual([4, [true, false, true]]);
  await reader.read();
  expect(reader.handled).toEqual(asks(5));
});

it('a client that reads nothing for a minute is disconnected with the reason', () => {
  const reader = new Reader();
  reader.slow.take(asks(5));
  reader.clock.advance(59_000);
  expect(reader.reason).toBeUndefined();
  reader.clock.advance(3000);
  expect(reader.reason?.message).toContain('read nothing for 60000 ms while answers waited for it');
});
