/** Memory for a frame with one part of a large result (512 KiB), and what is around it. */
const BLOCK_BYTES = 576 * 1024;

/** Smaller frames are cheap to allocate anew. */
const SMALL_BYTES = BLOCK_BYTES / 2;

/** Blocks that are kept: twice what one transfer has under way. */
const FREE_MAX = 8;

/**
 * Memory for large frames that is used again. The parts of a large result would otherwise each take memory that
 * the operating system has to clear first, which costs more than all copying.
 */
export class FrameMemory {
  private readonly free: ArrayBuffer[] = [];

  /** Memory that is not cleared, and to which nothing else refers. */
  take(nbytes: number): Uint8Array<ArrayBuffer> {
    if (nbytes < SMALL_BYTES || nbytes > BLOCK_BYTES) return unclearedBytes(nbytes);
    const block = this.free.pop() ?? unclearedBytes(BLOCK_BYTES).buffer;
    return new Uint8Array(block, 0, nbytes);
  }

  /**
   * @param bytes - memory from `take`, or a part of it, to which nothing refers any more
   * @returns whether it is kept for a later frame
   */
  giveBack({ buffer }: Uint8Array): boolean {
    const { free } = this;
    if (!(buffer instanceof ArrayBuffer) || buffer.byteLength !== BLOCK_BYTES) return false;
    if (free.length >= FREE_MAX || free.includes(buffer)) return false;
    free.push(buffer);
    return true;
  }
}

/** Not from the pool of `Buffer`, which others share. */
function unclearedBytes(nbytes: number): Uint8Array<ArrayBuffer> {
  const buffer = Buffer.allocUnsafeSlow(nbytes);
  return new Uint8Array(buffer.buffer, buffer.byteOffset, nbytes);
}
