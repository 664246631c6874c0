/** Memory of large frames that is used again. */
import { expect, it } from 'vitest';

import { SystemClock } from '../../../adapters/clocks/index.ts';
import { FrameMemory } from '../../../adapters/codecs/msgpack.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import type { Connection, ConnectionHandlers } from '../../../core/api/index.ts';
import { PART_BYTES } from '../../../core/shared/fetch-data.ts';

it('memory of a part that is given back holds the next one, and is given once', () => {
  const memory = new FrameMemory();
  const part = memory.take(PART_BYTES + 100);
  expect(memory.giveBack(part.subarray(50, 60))).toBe(true);
  expect(memory.giveBack(part)).toBe(false);
  expect(memory.take(PART_BYTES).buffer).toBe(part.buffer);
  expect(memory.take(PART_BYTES).buffer).not.toBe(part.buffer);
});

it('memory of other sizes, or shared, is never used again, and what is kept has a bound', () => {
  const memory = new FrameMemory();
  for (const nbytes of [10, 4096, 2 * PART_BYTES]) {
    const bytes = memory.take(nbytes);
    expect(bytes).toHaveLength(nbytes);
    expect(memory.giveBack(bytes)).toBe(false);
  }
  const { byteLength } = memory.take(PART_BYTES).buffer;
  expect(memory.giveBack(new Uint8Array(new SharedArrayBuffer(byteLength)))).toBe(false);
  const many = Array.from({ length: 100 }, () => memory.take(PART_BYTES));
  expect(many.filter((bytes) => memory.giveBack(bytes))).toHaveLength(8);
});

const nothing: ConnectionHandlers = { onMessages: () => undefined, onClose: () => undefined };

it('parts that are sent over TCP in memory that is used again arrive as they were', async () => {
  const COUNT = 60;
  const transport = new TcpTransport(new SystemClock());
  const recent: { readonly at: number; readonly bytes: Uint8Array }[] = [];
  const damaged: number[] = [];
  const used = new Set<ArrayBufferLike>();
  let end: () => void = () => undefined;
  const allCame = new Promise<void>((resolve) => {
    end = resolve;
  });
  const look = (connection: Connection): void => {
    const { at, bytes } = recent.shift()!;
    used.add(bytes.buffer);
    if (bytes.length !== PART_BYTES || bytes.some((byte) => byte !== at)) damaged.push(at);
    connection.giveBack?.(bytes);
  };
  const listener = await transport.listen('tcp://127.0.0.1:0', (connection) => ({
    onMessages(batch) {
      for (const { at, bytes } of batch) {
        recent.push({ at: at as number, bytes: bytes as Uint8Array });
        if (recent.length > 3) look(connection);
        if (at !== COUNT - 1) continue;
        while (recent.length > 0) look(connection);
        end();
      }
    },
    onClose: () => undefined,
  }));
  const connection = await transport.connect(listener.address, () => nothing);
  const bytes = new Uint8Array(PART_BYTES);
  for (let at = 0; at < COUNT; at++) {
    connection.send({ at, bytes: bytes.fill(at) });
    if (at % 7 === 6) await connection.drained();
  }
  await allCame;
  expect(damaged).toEqual([]);
  expect(used.size).toBeLessThan(COUNT / 2);
  await connection.close();
  await listener.close();
});
