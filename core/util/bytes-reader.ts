/** Reads bytes that lie in memory from their beginning to their end. */
export class BytesReader {
  private at = 0;

  constructor(readonly bytes: Uint8Array) {}

  get nbytes(): number {
    return this.bytes.byteLength;
  }

  /** A view of the next bytes, at most `nbytesMax`. */
  read(nbytesMax: number): Uint8Array {
    const part = this.bytes.subarray(this.at, this.at + nbytesMax);
    this.at += part.byteLength;
    return part;
  }

  close(): void {
    this.at = this.bytes.byteLength;
  }
}
