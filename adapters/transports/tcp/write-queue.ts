import type { Socket } from 'node:net';

/** Largest piece that is given to the socket at once, in bytes. */
const PIECE_BYTES = 1024 * 1024;

/** What the socket may hold before it gets more, in bytes: enough to keep the kernel's buffer full. */
const SOCKET_BYTES_MAX = 1024 * 1024;

/**
 * A piece of this size waits until the socket has taken all that came before. An encrypted socket copies what it
 * gets while it writes into one new buffer, which costs more than to encrypt it.
 */
const LARGE_PIECE_BYTES = 64 * 1024;

const NO_BYTES = new Uint8Array(0);

/**
 * Writes to a socket piece by piece, so that queued bytes and sent bytes can be distinguished and a
 * message of a gigabyte does not block the event loop.
 */
export class WriteQueue {
  private chunks: Uint8Array[] = [];
  private head = 0;
  /** What is written of the first chunk. */
  private headOffset = 0;
  private queuedBytes = 0;
  private inSocketBytes = 0;
  private ending = false;

  /**
   * @param onProgress - some of it left, or the end was reached
   * @param onWritten - a large chunk is not needed any more
   */
  constructor(
    private readonly socket: Socket,
    private readonly onProgress: () => void,
    private readonly onWritten?: (chunk: Uint8Array) => unknown,
  ) {}

  /** Bytes that were pushed and that the kernel has not taken. */
  get nbytes(): number {
    return this.queuedBytes + this.inSocketBytes;
  }

  /** @param chunk - belongs to the queue from now on */
  push(chunk: Uint8Array): void {
    this.chunks.push(chunk);
    this.queuedBytes += chunk.length;
  }

  /** Gives to the socket what it can take. */
  pump(): void {
    if (this.socket.destroyed) return;
    while (this.queuedBytes > 0 && this.takesMore()) this.writeNext();
    if (this.ending && this.queuedBytes === 0) {
      this.ending = false;
      this.socket.end();
    }
  }

  /** Ends the stream when all that was pushed is written. */
  end(): void {
    this.ending = true;
    this.pump();
  }

  clear(): void {
    this.chunks = [];
    this.head = 0;
    this.headOffset = 0;
    this.queuedBytes = 0;
    this.ending = false;
  }

  private takesMore(): boolean {
    if (this.inSocketBytes === 0) return true;
    const pieceBytes = this.first.length - this.headOffset;
    return pieceBytes < LARGE_PIECE_BYTES && this.inSocketBytes < SOCKET_BYTES_MAX;
  }

  private get first(): Uint8Array {
    return this.chunks[this.head] ?? NO_BYTES;
  }

  private writeNext(): void {
    const chunk = this.first;
    const end = Math.min(chunk.length, this.headOffset + PIECE_BYTES);
    const piece = chunk.subarray(this.headOffset, end);
    const isLast = end === chunk.length;
    if (isLast) this.dropFirst();
    else this.headOffset = end;
    this.inSocketBytes += piece.length;
    this.queuedBytes -= piece.length;
    this.socket.write(piece, (error) => {
      this.inSocketBytes -= piece.length;
      if (isLast && chunk.length >= LARGE_PIECE_BYTES && !error) this.onWritten?.(chunk);
      this.pump();
      this.onProgress();
    });
  }

  private dropFirst(): void {
    this.headOffset = 0;
    this.head++;
    if (this.head < this.chunks.length) return;
    this.chunks = [];
    this.head = 0;
  }
}
