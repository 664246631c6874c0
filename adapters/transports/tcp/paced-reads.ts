import type { Socket } from 'node:net';

import type { TurnBudget } from '../../../core/shared/turn.ts';
import { keptChunk } from './socket-layer.ts';

/** A socket of which this much waits to be handled is not read: what one read brings at most. */
const HELD_BYTES_MAX = 64 * 1024;

/**
 * Passes the chunks of a socket on in order, within the budget of the event-loop turn. Chunks that
 * exceed the budget are held for a later turn, and a peer that continues to send meets
 * back-pressure.
 */
export class PacedReads {
  private held: Buffer[] = [];
  private heldBytes = 0;
  private isFull = false;
  private isStopped = false;

  /**
   * @param socket - its chunks are taken from its event `data`; what else was read comes by `take`
   * @param onChunk - handles what was read; must not throw
   */
  constructor(
    private readonly socket: Socket,
    private readonly turn: TurnBudget,
    private readonly onChunk: (chunk: Buffer) => void,
  ) {
    socket.on('data', (chunk: Buffer) => this.take(chunk));
  }

  /** Nothing waits: the next chunk follows what was passed on last. */
  get isEmpty(): boolean {
    return this.held.length === 0;
  }

  /** A chunk was read. */
  take(chunk: Buffer): void {
    if (this.held.length === 0 && this.turn.admits()) this.onChunk(chunk);
    else this.hold(chunk);
  }

  /**
   * Called when the owner can accept no more for now. Bytes that have arrived are still passed on.
   */
  pause(): void {
    this.isStopped = true;
    this.socket.pause();
  }

  resume(): void {
    this.isStopped = false;
    if (!this.isFull) this.socket.resume();
  }

  /** Passes on what is held, because the connection ends. */
  finish(): void {
    const { held } = this;
    this.held = [];
    this.heldBytes = 0;
    for (const chunk of held) this.onChunk(chunk);
  }

  private hold(chunk: Buffer): void {
    this.heldBytes += chunk.length;
    if (this.held.push(keptChunk(chunk)) === 1) {
      this.turn.later(() => {
        this.goOn();
      });
    }
    if (this.heldBytes < HELD_BYTES_MAX || this.isFull) return;
    this.isFull = true;
    this.socket.pause();
  }

  private goOn(): void {
    this.finish();
    if (!this.isFull) return;
    this.isFull = false;
    if (!this.isStopped) this.socket.resume();
  }
}
