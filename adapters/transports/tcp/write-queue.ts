import type { Socket } from 'node:net';

/** Largest piece that is given to the socket at once, in bytes. */
const PIECE_BYTES = 256 * 1024;

/** What the socket may hold before it gets more, in bytes: enough to keep the kernel's buffer full. */
const SOCKET_BYTES_MAX = 1024 * 1024;

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

  /** @param onProgress - some of it left, or the end was reached */
  constructor(
    private readonly socket: Socket,
    private readonly onProgress: () => void,
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
    while (this.queuedBytes > 0 && this.inSocketBytes < SOCKET_BYTES_MAX) this.write(this.next());
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

  private write(piece: Uint8Array): void {
    this.inSocketBytes += piece.length;
    this.queuedBytes -= piece.length;
    this.socket.write(piece, () => {
      this.inSocketBytes -= piece.length;
      this.pump();
      this.onProgress();
    });
  }

  private next(): Uint8Array {
    const chunk = this.chunks[this.head] ?? new Uint8Array(0);
    const piece = chunk.subarray(this.headOffset, this.headOffset + PIECE_BYTES);
    this.headOffset += piece.length;
    if (this.headOffset === chunk.length) {
      this.headOffset = 0;
      this.head++;
      if (this.head === this.chunks.length) {
        this.chunks = [];
        this.head = 0;
      }
    }
    return piece;
  }
}
