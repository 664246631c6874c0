/**
 * A value that only Python can read, carried as it came: what Dask calls `Serialized` (stays as it is
 * until someone asks) or `Pickled` (read when it arrives).
 */
export class Opaque {
  constructor(
    readonly kind: 'serialized' | 'pickled',
    /** The msgpack of the sub-header, byte for byte. It must not be changed. */
    readonly header: Uint8Array,
    /** As many frames as the sub-header states. They must not be changed. */
    readonly frames: readonly Uint8Array[],
  ) {}

  /** Of header and frames together. */
  get nbytes(): number {
    let sum = this.header.length;
    for (const frame of this.frames) sum += frame.length;
    return sum;
  }
}

/** A msgpack value of an extension type, which Dask itself never sends but users may. */
export class MsgpackExtension {
  constructor(
    /** From -128 to 127. */
    readonly type: number,
    readonly data: Uint8Array,
  ) {}
}
