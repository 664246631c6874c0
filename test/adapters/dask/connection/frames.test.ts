import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { FrameReader, packFrames } from '../../../../adapters/dask/wire/frames.ts';

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

function u64(...values: readonly (number | bigint)[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length);
  values.forEach((value, index) => bytes.writeBigUInt64LE(BigInt(value), 8 * index));
  return bytes;
}

function readAll(stream: Uint8Array, chunkBytes: number): string[][] {
  const messages: string[][] = [];
  const reader = new FrameReader((frames) => {
    messages.push(frames.map((frame) => Buffer.from(frame).toString('latin1')));
  });
  for (let at = 0; at < stream.length; at += chunkBytes) {
    reader.push(stream.slice(at, at + chunkBytes));
  }
  expect(reader.endError()).toBeUndefined();
  return messages;
}

/** As a socket does that reads into the memory of the reader. */
function readInPlace(stream: Uint8Array, chunkBytes: number): string[][] {
  const messages: string[][] = [];
  const reader = new FrameReader((frames) => {
    messages.push(frames.map((frame) => Buffer.from(frame).toString('latin1')));
  });
  let at = 0;
  while (at < stream.length) {
    const space = reader.space();
    const chunk = stream.slice(at, at + Math.min(chunkBytes, space?.length ?? chunkBytes));
    at += chunk.length;
    if (space === undefined) reader.push(chunk);
    else {
      space.set(chunk);
      reader.filled(chunk.length);
    }
  }
  expect(reader.endError()).toBeUndefined();
  return messages;
}

describe('frames', () => {
  test('are written with total, count and lengths', () => {
    const bytes = Buffer.concat(
      packFrames([Buffer.from('abc'), Buffer.from(''), Buffer.from('d')]),
    );
    expect(bytes).toEqual(Buffer.concat([u64(8 + 24 + 4, 3, 3, 0, 1), Buffer.from('abcd')]));
  });

  test('are read when the total leaves out the large ones', () => {
    const stream = Buffer.concat([u64(8 + 16 + 3, 2, 3, 5), Buffer.from('abclarge')]);
    for (const chunkBytes of [1, 7, 30, 100]) {
      expect(readAll(Buffer.concat([stream, stream]), chunkBytes)).toEqual([
        ['abc', 'large'],
        ['abc', 'large'],
      ]);
    }
  });

  test(`come back whatever their sizes and chunks are (SEED=${seed})`, () => {
    const frame = fc
      .oneof(fc.nat(30), fc.nat(3), fc.integer({ min: 65_000, max: 300_000 }))
      .map((length) => Buffer.alloc(length, String(length % 10)));
    fc.assert(
      fc.property(
        fc.array(fc.array(frame, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 }),
        fc.oneof(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1000, max: 200_000 })),
        (messages, chunkBytes) => {
          const stream = Buffer.concat(messages.flatMap((frames) => packFrames(frames)));
          const size = stream.length > 100_000 ? chunkBytes + 1000 : chunkBytes;
          const sent = messages.map((frames) => frames.map((each) => each.toString('latin1')));
          expect(readAll(stream, size)).toEqual(sent);
          expect(readInPlace(stream, size)).toEqual(sent);
        },
      ),
      { seed, numRuns: 60 },
    );
  });

  test('a large frame has separate memory and is written without a copy', () => {
    const large = Buffer.alloc(1_000_000, 'x');
    const chunks = packFrames([Buffer.from('a'), large]);
    expect(chunks[1]).toBe(large);
    let read: readonly Uint8Array[] = [];
    const reader = new FrameReader((frames) => {
      read = frames;
    });
    const stream = Buffer.concat(chunks);
    for (let at = 0; at < stream.length; at += 65_536)
      reader.push(stream.subarray(at, at + 65_536));
    expect(read[1]!.byteLength).toBe(1_000_000);
    expect(read[1]!.buffer.byteLength).toBe(1_000_000);
  });
});

describe('bad streams', () => {
  test.each([
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
    ['a message without frames', u64(8, 0)],
    ['a count that does not fit the total', u64(100, 2000)],
    ['more frames than anyone sends', u64(2 ** 40, 2 ** 36)],
    ['a total of 2^64 - 1 bytes', u64(2n ** 64n - 1n, 1, 1)],
    ['a frame of 2^63 bytes', u64(100, 1, 2n ** 63n)],
    ['a total larger than all frames', Buffer.concat([u64(500, 1, 1), Buffer.from('a')])],
  ])('%s is refused', (_, bytes) => {
    for (const chunkBytes of [1, bytes.length]) {
      const reader = new FrameReader(() => undefined);
      expect(() => {
        for (let at = 0; at < bytes.length; at += chunkBytes) {
          reader.push(bytes.subarray(at, at + chunkBytes));
        }
      }).toThrow(expect.objectContaining({ code: 'ERR_FRAME' }));
    }
  });

  test('an announced frame of gigabytes costs no memory before it comes', () => {
    const before = process.memoryUsage().arrayBuffers;
    const readers = Array.from({ length: 20 }, () => new FrameReader(() => undefined));
    for (const reader of readers) {
      reader.push(u64(8 + 16 + 2 ** 31 + 100, 2, 100, 2 ** 31));
      reader.push(Buffer.alloc(100));
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50 * 1024 * 1024);
  });

  test('a stream that ends within a message says so', () => {
    const reader = new FrameReader(() => undefined);
    reader.push(Buffer.concat([u64(8 + 16 + 8, 2, 3, 5), Buffer.from('abcl')]));
    expect(reader.endError()).toMatchObject({ code: 'ERR_FRAME' });
    expect(reader.endError()?.message).toContain('of 2 frames');
  });
});
