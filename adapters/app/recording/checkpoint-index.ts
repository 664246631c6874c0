import {
  BODY_HEADER_BYTES,
  FILE_HEADER_BYTES,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type FrameKind,
} from '../../../core/log/format.ts';
import { readBytes } from '../../log/read-log.ts';
import { recordingFiles } from './recording-paths.ts';

/** Where a replay can begin. */
export interface CheckpointPlace {
  readonly file: string;
  /** Where its first frame begins, in bytes. */
  readonly offset: number;
  /** Sequence number of that frame in its file, and in the whole recording. */
  readonly sequence: number;
  readonly number: number;
  /** Number of its last frame. */
  readonly endNumber: number;
  readonly timeMs: number;
}

/**
 * The checkpoints of a recording, in order. Only the heads of frames are read, so that this takes little more than reading
 * the file; it ends where the file is damaged. O(bytes).
 */
export async function checkpointsOf(path: string): Promise<readonly CheckpointPlace[]> {
  const found: CheckpointPlace[] = [];
  let number = 0;
  for (const [index, file] of recordingFiles(path).entries()) {
    let first: (FrameHead & { readonly number: number }) | undefined;
    let last: CheckpointPlace | undefined;
    const heads = new FrameHeads();
    for await (const bytes of readBytes(file)) {
      for (const head of heads.read(bytes)) {
        // Its last frame is complete: another one follows.
        if (last !== undefined) found.push(last);
        last = undefined;
        if (head.kind === 'state') first ??= { ...head, number };
        else if (head.kind === 'checkpoint' && first !== undefined) {
          const { offset, sequence, number: begin, timeMs } = first;
          last = { file, offset, sequence, number: begin, endNumber: number, timeMs };
        }
        if (head.kind !== 'state') first = undefined;
        if (index === 0 || head.kind !== 'header') number++;
      }
    }
    if (last !== undefined && heads.isComplete) found.push(last);
  }
  return found;
}

/** The last checkpoint from which this frame can be reached. */
export async function checkpointBefore(
  path: string,
  frame: number,
): Promise<CheckpointPlace | undefined> {
  return (await checkpointsOf(path)).findLast(({ endNumber }) => endNumber <= frame);
}

interface FrameHead {
  readonly kind: FrameKind | undefined;
  readonly offset: number;
  readonly sequence: number;
  readonly timeMs: number;
}

/** Goes from head to head through the bytes of a log, in pieces of any size. */
class FrameHeads {
  private pending: Buffer = Buffer.alloc(0);
  /** Place of the first pending byte in the file. */
  private offset = 0;
  /** Bytes before the next head. */
  private skipped = FILE_HEADER_BYTES;
  private isDamaged = false;

  /** Whether the last frame is complete. */
  get isComplete(): boolean {
    return this.skipped === 0 && this.pending.length === 0;
  }

  *read(bytes: Uint8Array): Generator<FrameHead, void, undefined> {
    if (this.isDamaged) return;
    this.pending = Buffer.concat([this.pending, bytes]);
    for (;;) {
      this.drop(Math.min(this.skipped, this.pending.length));
      const { pending, offset } = this;
      if (this.skipped > 0 || pending.length < FRAME_HEADER_BYTES + BODY_HEADER_BYTES) return;
      const length = pending.readUInt32LE(0);
      this.isDamaged = length < BODY_HEADER_BYTES || length > FRAME_BYTES_MAX;
      if (this.isDamaged) return;
      this.skipped = FRAME_HEADER_BYTES + length;
      const body = pending.subarray(FRAME_HEADER_BYTES);
      yield {
        kind: FRAME_KINDS[body.readUInt8(0)],
        offset,
        sequence: body.readUInt32LE(4) + 2 ** 32 * body.readUInt32LE(8),
        timeMs: body.readDoubleLE(12),
      };
    }
  }

  private drop(nbytes: number): void {
    this.pending = this.pending.subarray(nbytes);
    this.offset += nbytes;
    this.skipped -= nbytes;
  }
}
