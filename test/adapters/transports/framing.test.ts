import { isDeepStrictEqual } from 'node:util';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import {
  FrameReader,
  type FrameSink,
  FrameWriter,
  GOODBYE,
  PREAMBLE,
} from '../../../adapters/transports/tcp/framing.ts';
import type { WireMessage } from '../../../core/api/index.ts';

/** Notes what a reader finds. */
class Found implements FrameSink {
  readonly events: string[] = [];
  readonly messages: WireMessage[] = [];

  onPreamble(): void {
    this.events.push('preamble');
  }

  onBatch(batch: readonly WireMessage[]): void {
    this.messages.push(...batch);
  }

  onGoodbye(): void {
    this.events.push('goodbye');
  }
}

function streamOf(
  batches: readonly (readonly WireMessage[])[],
  codec = new MsgpackCodec(),
): Buffer {
  const writer = new FrameWriter(codec);
  const frames = batches.flatMap((batch) => {
    writer.add(batch);
    return writer.take();
  });
  return Buffer.concat([PREAMBLE, ...frames, GOODBYE]);
}

/** Cuts the stream at the given places, in memory that is overwritten after each chunk. */
function feed(reader: FrameReader, stream: Buffer, cuts: readonly number[]): void {
  const places = [...cuts.map((cut) => cut % (stream.length + 1)), stream.length];
  places.sort((a, b) => a - b);
  let start = 0;
  for (const place of places) {
    const chunk = Buffer.from(stream.subarray(start, place));
    reader.push(chunk);
    chunk.fill(0xee);
    start = place;
  }
}

const message = fc.record(
  {
    op: fc.string({ maxLength: 10 }),
    number: fc.integer(),
    bytes: fc.oneof(
      { arbitrary: fc.uint8Array({ maxLength: 50 }), weight: 8 },
      {
        arbitrary: fc.constantFrom(70_000, 150_000).map((n) => new Uint8Array(n).fill(n)),
        weight: 1,
      },
    ),
    list: fc.array(fc.string({ unit: 'binary', maxLength: 10 }), { maxLength: 4 }),
  },
  { noNullPrototype: true },
);

describe('frames', () => {
  it('give the same messages however the stream is cut into chunks', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(message, { minLength: 1, maxLength: 8 }), { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (batches, cuts) => {
          const found = new Found();
          const reader = new FrameReader(new MsgpackCodec(), found);
          feed(reader, streamOf(batches), cuts);
          // Vitest compares large arrays of bytes slowly.
          expect(isDeepStrictEqual(found.messages, batches.flat())).toBe(true);
          expect(found.events).toEqual(['preamble', 'goodbye']);
          expect(reader.endError()).toBeUndefined();
        },
      ),
      { numRuns: 150 },
    );
  });

  it('give the same messages byte by byte', () => {
    const batches = [[{ a: 1 }, { b: 'two' }], [{ bytes: new Uint8Array([1, 2, 3]) }]];
    const stream = streamOf(batches);
    const found = new Found();
    feed(new FrameReader(new MsgpackCodec(), found), stream, [...stream.keys()]);
    expect(found.messages).toStrictEqual(batches.flat());
  });

  it('say at which byte a stream that ends too early was cut', () => {
    const stream = streamOf([[{ a: 1 }], [{ b: 2 }]]);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: stream.length - 1 }), (nbytes) => {
        const reader = new FrameReader(new MsgpackCodec(), new Found());
        reader.push(stream.subarray(0, nbytes));
        const error = reader.endError();
        expect(error?.code).toMatch(/^ERR_(FRAME|CLOSED|PROTOCOL)$/);
      }),
    );
  });

  it('never break a reader: any bytes after the preamble are read or refused with a code', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const reader = new FrameReader(new MsgpackCodec(1 << 20), new Found());
        reader.push(PREAMBLE);
        try {
          reader.push(bytes);
        } catch (error) {
          expect(error).toMatchObject({
            code: expect.stringMatching(/^ERR_(FRAME|PROTOCOL)$/) as string,
          });
        }
      }),
      { numRuns: 500 },
    );
  });

  it('hold no more than 256 KiB of small messages each, and never exceed the limit', () => {
    const codec = new MsgpackCodec(64 * 1024);
    const writer = new FrameWriter(codec);
    for (let number = 0; number < 500; number++) writer.add([{ number, text: 'x'.repeat(1000) }]);
    const nbytes = writer.nbytes;
    const stream = Buffer.concat([PREAMBLE, ...writer.take(), GOODBYE]);
    expect(stream.length).toBe(nbytes + PREAMBLE.length + GOODBYE.length);
    const found = new Found();
    new FrameReader(codec, found).push(stream);
    expect(found.messages.map((each) => each['number'])).toEqual([...Array(500).keys()]);
    expect(writer.nbytes).toBe(0);
    expect(writer.take()).toEqual([]);
  });

  it('take a message of exactly the limit, and refuse one byte more before anything is added', () => {
    const codec = new MsgpackCodec(100_000);
    const writer = new FrameWriter(codec);
    const overhead = codec.encodeMessage({ bytes: new Uint8Array(70_000) }).length - 70_000 + 5;
    const fits = { bytes: new Uint8Array(100_000 - overhead) };
    writer.add([fits]);
    const found = new Found();
    new FrameReader(codec, found).push(Buffer.concat([PREAMBLE, ...writer.take()]));
    expect(isDeepStrictEqual(found.messages, [fits])).toBe(true);
    const tooLarge = { bytes: new Uint8Array(100_001 - overhead) };
    expect(() => writer.add([{ a: 1 }, tooLarge])).toThrow('does not fit in a frame');
    expect(writer.nbytes).toBe(0);
  });
});

describe('the first bytes of another protocol', () => {
  const cases: readonly (readonly [string, string | Uint8Array, string])[] = [
    ['an HTTP request', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'seems to speak HTTP'],
    ['an HTTP answer', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'seems to speak HTTP'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'seems to speak HTTP'],
    ['TLS', new Uint8Array([0x16, 0x03, 0x01, 0x02, 0x00]), 'seems to speak TLS'],
    ['SSH', 'SSH-2.0-OpenSSH_9.6\r\n', 'seems to speak SSH'],
    ['Redis', '*1\r\n$4\r\nPING\r\n', 'seems to speak Redis'],
    ['Dask', new Uint8Array([2, 0, 0, 0, 0, 0, 0, 0, 9, 0]), 'seems to speak Dask'],
    ['the PROXY protocol', 'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n', 'the PROXY protocol'],
    ['a mail server', '220 mail.example ESMTP\r\n', 'SMTP or FTP'],
    ['garbage', new Uint8Array([0xff, 0x00, 0x12]), 'its first bytes are'],
    ['another version', 'yardmaster-tcp/2\nxyz', 'speaks version "2" of the protocol'],
    ['a version that begins as ours', 'yardmaster-tcp/12\n', 'speaks version "12"'],
    ['a version without end', `yardmaster-tcp/1${'1'.repeat(100)}`, 'speaks version "1111'],
  ];

  it.each(cases)('are reported: %s', (_what, text, expected) => {
    const bytes = Buffer.from(text as string);
    const reader = new FrameReader(new MsgpackCodec(), new Found());
    expect(() => reader.push(bytes)).toThrow(
      expect.objectContaining({
        code: 'ERR_PROTOCOL',
        message: expect.stringContaining(expected) as string,
      }),
    );
  });

  it.each(cases)('are reported also when they come byte by byte: %s', (_what, text) => {
    const bytes = Buffer.from(text as string);
    const reader = new FrameReader(new MsgpackCodec(), new Found());
    expect(() => {
      for (const byte of bytes) reader.push(Uint8Array.of(byte));
    }).toThrow(expect.objectContaining({ code: 'ERR_PROTOCOL' }));
  });

  it('are reported at the first byte that does not fit', () => {
    const reader = new FrameReader(new MsgpackCodec(), new Found());
    expect(() => reader.push(Buffer.from('G'))).toThrow('seems to speak HTTP');
  });
});
