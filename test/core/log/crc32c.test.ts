import { expect, it } from 'vitest';
import { crc32c } from '../../../core/log/format.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

it('CRC-32C gives the values of RFC 3720, appendix B.4', () => {
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index))).toBe(0x46dd794e);
  expect(crc32c(bytesOf('123456789'))).toBe(0xe3069283);
});

it('a checksum of parts is that of the whole', () => {
  const whole = bytesOf('a text whose length is no multiple of eight');
  for (let cut = 0; cut <= whole.length; cut++) {
    expect(crc32c(whole.subarray(cut), crc32c(whole.subarray(0, cut)))).toBe(crc32c(whole));
  }
});

it('any flipped bit changes it', () => {
  const bytes = bytesOf('0123456789abcdef');
  const before = crc32c(bytes);
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const flipped = bytes.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    expect(crc32c(flipped)).not.toBe(before);
  }
});
