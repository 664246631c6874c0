import { isInPieces, type Pieces, readLayout } from './byte-layout.ts';

/** A stretch of the bytes, and where it goes. */
interface Region {
  readonly start: number;
  readonly target: Uint8Array;
}

/**
 * Collects the bytes of a serialised value as they arrive, each large binary part in separate
 * memory, which then becomes part of the value. So the value is never in memory twice.
 */
export class ScatteredValue {
  /** Undefined: it lies in one piece. */
  private regions: readonly Region[] | undefined;
  private whole: Uint8Array | undefined;
  private collected: Pieces | undefined;

  /** @param byteLength - of the whole value */
  constructor(readonly byteLength: number) {}

  /** Set when the value came in pieces; everything must have arrived. */
  get pieces(): Pieces | undefined {
    return this.collected;
  }

  /** The value in one piece, if it came so. */
  get bytes(): Uint8Array {
    return this.whole ?? new Uint8Array(0);
  }

  /**
   * Takes some bytes; they have to come in their order.
   * @throws RangeError when there is no memory for it
   */
  set(bytes: Uint8Array, at: number): void {
    if (at === 0) this.begin(bytes);
    this.whole?.set(bytes, at);
    const end = at + bytes.byteLength;
    for (const { start, target } of this.regions ?? []) {
      const from = Math.max(at, start);
      const to = Math.min(end, start + target.byteLength);
      if (from < to) target.set(bytes.subarray(from - at, to - at), from - start);
    }
  }

  private begin(start: Uint8Array): void {
    const layout = isInPieces(start) ? readLayout(start) : undefined;
    if (layout?.nbytes !== this.byteLength) {
      this.whole = new Uint8Array(this.byteLength); // In one piece, or of very many.
      return;
    }
    const head = new Uint8Array(layout.headBytes);
    const parts = layout.parts.map(({ nbytes }) => new Uint8Array(nbytes));
    const { bufferCount, sharedCount } = layout;
    this.collected = { head, parts, bufferCount, sharedCount };
    this.regions = [
      { start: layout.headOffset, target: head },
      ...layout.parts.map(({ offset }, index) => ({
        start: offset,
        target: parts[index] as Uint8Array,
      })),
    ];
  }
}
