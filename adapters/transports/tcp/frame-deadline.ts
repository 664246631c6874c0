import type { Clock, Timer } from '../../../core/api/index.ts';
import { setAwakeTimer } from '../../../core/shared/timers.ts';

/**
 * A frame that has begun is ended with its connection when less of it than these bytes comes within this time: what has
 * come occupies memory.
 */
export const FRAME_STALL_MS = 60_000;
const FRAME_BYTES_MIN = 64 * 1024;

/** The questions of a {@link FrameDeadline} to its connection. */
export interface WatchedFrames {
  /** Number of the frame of which a part has come; undefined between two frames. */
  underWay(): number | undefined;
  /** The frame stands still: `nbytes` of it came within the last `withinMs`. */
  onStalled(nbytes: number, withinMs: number): void;
  /** Milliseconds for which a frame may stand still. Default: {@link FRAME_STALL_MS}. */
  stallMs?(): number;
}

/**
 * Notices a peer that has begun a frame and sends no more of it, or a few bytes now and then. Time in which this process
 * stands still, or does not read the peer, does not count. One timer at a time, which is set anew with the frame that is
 * under way when it is over, so a busy connection sets few.
 */
export class FrameDeadline {
  private receivedBytes = 0;
  /** Set from the begin of a frame that comes in parts until a while after its end. */
  private timer: Timer | undefined;
  private isHeld = false;
  /** It was held since the timer was set. */
  private wasHeld = false;
  private isOver = false;

  constructor(
    private readonly clock: Clock,
    private readonly frames: WatchedFrames,
  ) {}

  /** So many bytes have come, and their frames are handled as far as they are complete. */
  received(nbytes: number): void {
    this.receivedBytes += nbytes;
    if (this.timer === undefined) this.watch();
  }

  /** Tells whether the peer is not read at present. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
    if (isHeld) this.wasHeld = true;
  }

  /** The connection is over. */
  end(): void {
    this.isOver = true;
    this.timer?.cancel();
  }

  private watch(): void {
    const { frames, receivedBytes } = this;
    const frame = frames.underWay();
    this.timer = undefined;
    if (frame === undefined || this.isOver) return;
    this.wasHeld = this.isHeld;
    const stallMs = frames.stallMs?.() ?? FRAME_STALL_MS;
    this.timer = setAwakeTimer(this.clock, stallMs, () => {
      const nbytes = this.receivedBytes - receivedBytes;
      const isStuck = frames.underWay() === frame && nbytes < FRAME_BYTES_MIN && !this.wasHeld;
      if (isStuck) frames.onStalled(nbytes, stallMs);
      else this.watch();
    });
  }
}
