const SLAB_BYTES = 32 * 1024;
const COPY_MAX_BYTES = SLAB_BYTES / 8;

/**
 * Copies byte arrays into separate memory, so that one small value does not keep alive the chunk of
 * the socket in which it arrived. Small arrays share pages. Repeated arrays (the pickled class of
 * each result, the sub-header of each task) are stored once.
 */
export class Slab {
  private page = new ArrayBuffer(0);
  private used = 0;
  private readonly known = new Array<Uint8Array | undefined>(KNOWN_COUNT).fill(undefined);

  /**
   * Returns a copy of these bytes, which may be shared with earlier callers and must not be
   * changed.
   */
  keep(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (2 * length > bytes.buffer.byteLength && length > KNOWN_MAX_BYTES) return bytes;
    if (length > KNOWN_MAX_BYTES) return this.copy(bytes);
    const place = placeOf(bytes);
    const known = this.known[place];
    if (known !== undefined && isSame(known, bytes)) return known;
    const copy = this.copy(bytes);
    this.known[place] = copy;
    return copy;
  }

  private copy(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > COPY_MAX_BYTES) return bytes.slice();
    if (this.used + length > this.page.byteLength) {
      this.page = new ArrayBuffer(SLAB_BYTES);
      this.used = 0;
    }
    const copy = new Uint8Array(this.page, this.used, length);
    copy.set(bytes);
    this.used += length;
    return copy;
  }
}

const KNOWN_COUNT = 256;
const KNOWN_MAX_BYTES = 160;

function placeOf(bytes: Uint8Array): number {
  const { length } = bytes;
  if (length === 0) return 0;
  const first = bytes[length >> 2] as number;
  const middle = bytes[length >> 1] as number;
  const later = bytes[length - (length >> 2) - 1] as number;
  return (((first * 31 + middle) * 31 + later) * 31 + length) % KNOWN_COUNT;
}

function isSame(known: Uint8Array, bytes: Uint8Array): boolean {
  const { length } = bytes;
  if (known.length !== length) return false;
  for (let index = length - 1; index >= 0; index--) {
    if (known[index] !== bytes[index]) return false;
  }
  return true;
}
