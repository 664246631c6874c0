import { describe, expect, it, vi } from 'vitest';
import { logCodec } from '../../../adapters/app/read-log.ts';
import { YardmasterError } from '../../../core/api/errors.ts';
import {
  BODY_HEADER_BYTES,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_BYTES_MAX,
  FORMAT_VERSION,
  FORMAT_VERSION_MIN,
  type LogFrame,
} from '../../../core/log/format.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import { LogWriter } from '../../../core/log/log-writer.ts';
import { HEADER } from './header.ts';

/** A log of a header and three stimuli. */
function makeLog(payloads: readonly unknown[] = [{ op: 'a' }, { op: 'b' }, { op: 'c' }]): Buffer {
  const parts: Uint8Array[] = [];
  const sink = (bytes: Uint8Array): void => void parts.push(bytes.slice());
  const writer = new LogWriter(logCodec(), sink, HEADER, 0);
  payloads.forEach((payload, index) => writer.append('stimulus', index + 0.5, payload, index));
  writer.flush();
  return Buffer.concat(parts);
}

interface Reading {
  readonly frames: LogFrame[];
  readonly error: YardmasterError | undefined;
}

function read(bytes: Uint8Array, pieceBytes = Infinity): Reading {
  const reader = new LogReader(logCodec(), 'file.ylog');
  const frames: LogFrame[] = [];
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      frames.push(...reader.read(bytes.subarray(at, Math.min(bytes.length, at + pieceBytes))));
    }
    reader.end();
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    return { frames, error };
  }
  return { frames, error: undefined };
}

describe('a log', () => {
  it.each([1, 7, 100, Infinity])('reads as it was written, in pieces of %d bytes', (piece) => {
    const { frames, error } = read(makeLog(), piece);
    expect(error).toBeUndefined();
    expect(frames).toMatchObject([
      { kind: 'header', sequence: 0, payload: HEADER, offset: FILE_HEADER_BYTES },
      { kind: 'stimulus', sequence: 1, timeMs: 0.5, mark: 0, payload: { op: 'a' } },
      { kind: 'stimulus', sequence: 2, timeMs: 1.5, mark: 1, payload: { op: 'b' } },
      { kind: 'stimulus', sequence: 3, timeMs: 2.5, mark: 2, payload: { op: 'c' } },
    ]);
  });

  it('is whole when a sink has kept slices of what it was handed, however much was gathered since', () => {
    const payloads = Array.from({ length: 40 }, (_, value) => ({
      op: 'part',
      bytes: new Uint8Array(10_000).fill(value),
    }));
    const { frames, error } = read(makeLog(payloads));
    expect(error).toBeUndefined();
    expect(frames.slice(1).map(({ payload }) => payload)).toEqual(payloads);
  });

  it('holds frames that are larger than what is gathered', () => {
    const bytes = new Uint8Array(300_000).fill(7);
    const { frames, error } = read(makeLog([{ bytes }, { op: 'after' }]), 65_536);
    expect(error).toBeUndefined();
    const { bytes: readBytes } = frames[1]!.payload as unknown as { bytes: Uint8Array };
    expect(Buffer.compare(readBytes, bytes)).toBe(0);
    expect(frames[2]?.payload).toEqual({ op: 'after' });
  });

  it('copies the pieces of a large frame once', () => {
    const log = makeLog([{ text: 'x'.repeat(100_000) }]);
    const concat = vi.spyOn(Buffer, 'concat');
    const { frames } = read(log, 100);
    const copied = concat.mock.results.reduce(
      (sum, { value }) => sum + (value as Buffer).length,
      0,
    );
    concat.mockRestore();
    expect(frames).toHaveLength(2);
    expect(copied).toBeLessThan(2 * log.length);
  });

  it('gives all frames before the place where it was cut off, at whichever byte', () => {
    const whole = makeLog();
    const ends = read(whole).frames.map(({ offset }) => offset);
    for (let length = 0; length < whole.length; length++) {
      const { frames, error } = read(whole.subarray(0, length));
      const complete = [...ends.slice(1), whole.length].filter((end) => end <= length).length;
      expect(frames).toHaveLength(complete);
      const isBetweenFrames =
        length >= FILE_HEADER_BYTES && (ends.includes(length) || length === whole.length);
      if (isBetweenFrames) expect(error).toBeUndefined();
      else expect(error?.data['damage']).toBe('torn');
    }
  });

  it('is refused from the first damaged frame on, whichever bit was flipped', () => {
    const whole = makeLog();
    const { frames: good } = read(whole);
    for (let bit = 0; bit < 8 * whole.length; bit++) {
      const at = bit >> 3;
      // Reserved bytes of the file header say nothing.
      if (at >= 12 && at < FILE_HEADER_BYTES) continue;
      const flipped = Buffer.from(whole);
      flipped[at]! ^= 1 << (bit & 7);
      const { frames, error } = read(flipped);
      expect(error?.code).toBe('ERR_LOG');
      expect(frames).toEqual(good.slice(0, frames.length));
      const damagedFrom = frames.length === 0 ? 0 : good[frames.length]!.offset;
      expect(damagedFrom).toBeLessThanOrEqual(at);
    }
  });

  it('names the file, the byte and the kind of damage', () => {
    const flipped = makeLog();
    flipped[flipped.length - 1]! ^= 1;
    const { error } = read(flipped);
    expect(error?.message).toMatch(
      /^the log file\.ylog has a frame with a wrong checksum, at byte \d+ \(frame 3\)$/,
    );
    expect(error?.data).toMatchObject({ file: 'file.ylog', frame: 3, damage: 'damaged' });
  });

  it('of another version is refused with both versions', () => {
    const other = makeLog();
    other.writeUInt32LE(FORMAT_VERSION + 1, 8);
    expect(read(other).error?.message).toContain(
      `has the format ${FORMAT_VERSION + 1}, and this version of Yardmaster reads the formats ${FORMAT_VERSION_MIN} to ${FORMAT_VERSION}`,
    );
  });

  it('that is something else is refused', () => {
    expect(read(Buffer.from('{"a": 1}')).error?.message).toContain('is no log of Yardmaster');
  });

  it('spells a text out once, and then gives its number', () => {
    const submission = (n: number): object => ({ op: 'submit', module: 'file:///tasks.js', n });
    const lengthOf = (count: number): number =>
      makeLog(Array.from({ length: count }, (_, n) => submission(n))).length;
    expect(lengthOf(1) - lengthOf(0)).toBeGreaterThan(60);
    expect(lengthOf(2) - lengthOf(1)).toBe(FRAME_HEADER_BYTES + BODY_HEADER_BYTES + 13);
  });

  it('reads as it was written with more texts and names than have numbers at the same time', () => {
    const count = 70_000;
    const texts = Array.from({ length: count }, (_, n) => `a text with the number ${n}`);
    const payloads = [
      { texts },
      { again: texts.filter((_, n) => n % 7 === 0), short: ['', 'é', 'ok'], long: 'x'.repeat(101) },
      Object.fromEntries(texts.slice(0, 300).map((text) => [text, text])),
      { [texts[0] as string]: 'é'.repeat(50), other: ['é'.repeat(50), 'é'.repeat(51)] },
    ];
    const { frames, error } = read(makeLog(payloads));
    expect(error).toBeUndefined();
    expect(frames.slice(1).map(({ payload }) => payload)).toEqual(payloads);
  });

  it('never refers to a text of a payload that could not be written', () => {
    const refused = { text: 'in none of the frames', cannotTravel: Symbol('none') };
    const parts: Uint8Array[] = [];
    const writer = new LogWriter(logCodec(), (bytes) => void parts.push(bytes.slice()), HEADER, 0);
    writer.append('stimulus', 0, { text: 'before' });
    expect(() => writer.append('stimulus', 0, refused)).toThrow(/Symbol|symbol/);
    writer.append('stimulus', 0, { text: refused.text, before: 'before' });
    writer.flush();
    const { frames, error } = read(Buffer.concat(parts));
    expect(error).toBeUndefined();
    expect(frames[2]?.payload).toEqual({ text: refused.text, before: 'before' });
  });

  it('with a frame twice is refused', () => {
    const whole = makeLog();
    const { frames } = read(whole);
    const last = whole.subarray(frames.at(-1)!.offset);
    expect(read(Buffer.concat([whole, last])).error?.message).toContain(
      'continues with frame 3 after 3',
    );
  });
});

it('no frame is written that no reader takes', () => {
  const large = new Uint8Array(FRAME_BYTES_MAX);
  const encoded: Uint8Array[] = [Uint8Array.of(0x80), large, Uint8Array.of(0x80)];
  const codec = {
    restart: () => undefined,
    encodeShared: () => encoded.shift() as Uint8Array,
    decode: () => undefined,
  };
  const writer = new LogWriter(codec, () => undefined, HEADER, 0);
  expect(() => writer.append('stimulus', 0, {})).toThrow(
    expect.objectContaining({ code: 'ERR_FRAME' }),
  );
  expect(writer.frames).toBe(1);
  writer.append('stimulus', 0, {});
  expect(writer.frames).toBe(2);
});
