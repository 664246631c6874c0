import { YardmasterError } from '../api/errors.ts';
import { meaningOf } from '../kernel/graph-table.ts';
import { OPAQUE, type StatePart } from '../kernel/snapshot.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import {
  BODY_HEADER_BYTES,
  crc32c,
  FILE_HEADER_BYTES,
  FORMAT_VERSION,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type FrameKind,
  type LogCheck,
  type LogCheckpoint,
  type LoggedPolicies,
  type LogHeader,
  MAGIC,
  MARK_MASK,
  type PayloadCodec,
  STARTS_SERIES,
} from './format.ts';
import type { KernelLog } from './recording-kernel.ts';

/** Frames are gathered up to this size before they are handed on. */
const CHUNK_BYTES = 128 * 1024;

/** Takes bytes, and has used them when it returns: they are overwritten then. */
type LogSink = (bytes: Uint8Array) => void;

/** The estimated size of a task in a checkpoint. */
const TASK_STATE_BYTES = 50;

export interface CheckpointDistance {
  /** Bytes of other frames between two of them, at least. */
  readonly bytesMin: number;
  /** And so many times the bytes of the one before. */
  readonly ratio: number;
}

/**
 * A byte of a checkpoint takes less than twice as long to make as the whole handling of the tasks that a byte of other
 * frames stands for: so checkpoints add less than one percent to what the scheduler spends.
 */
export const CHECKPOINT_DISTANCE: CheckpointDistance = { bytesMin: 8 * 2 ** 20, ratio: 200 };

/** Makes the bytes of one file of a log. Writes nowhere itself. */
export class LogWriter implements KernelLog {
  /** In a journal: the frames that are on the disk for certain. */
  syncedFrames = 0;
  private chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  private length: number;
  private sequence = 0;
  private handedOn = 0;
  private dueBytes: number;
  /** The offset at which the last checkpoint ended. */
  private endBytes = 0;
  /** True when the next frame refers to none before it. */
  private startsSeries = true;

  constructor(
    private readonly codec: PayloadCodec,
    private readonly sink: LogSink,
    private readonly header: LogHeader,
    nowMs: number,
    private readonly distance = CHECKPOINT_DISTANCE,
  ) {
    this.dueBytes = distance.bytesMin;
    this.chunk.fill(0, 0, FILE_HEADER_BYTES);
    this.chunk.set(MAGIC);
    this.chunk.writeUInt32LE(FORMAT_VERSION, MAGIC.length);
    this.length = FILE_HEADER_BYTES;
    this.append('header', nowMs, header);
  }

  /** Bytes so far. */
  get nbytes(): number {
    return this.handedOn + this.length;
  }

  /** Frames so far. */
  get frames(): number {
    return this.sequence;
  }

  isCheckpointDue(tasks: number): boolean {
    const { nbytes } = this;
    if (nbytes < this.dueBytes) return false;
    // The state may have grown since the last one, or there was none.
    return nbytes - this.endBytes >= this.distance.ratio * tasks * TASK_STATE_BYTES;
  }

  /** @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME`: nothing is added then */
  stimulus(stimulus: Stimulus, nowMs: number, mark?: number): void {
    const isReplayed = this.header.holds === 'all';
    this.append('stimulus', nowMs, isReplayed ? decisive(stimulus) : stimulus, mark);
  }

  policies(policies: LoggedPolicies, nowMs: number): void {
    this.append('policies', nowMs, policies);
  }

  check(check: LogCheck, nowMs: number): void {
    this.append('check', nowMs, check);
  }

  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<LogCheckpoint, 'parts'>,
    nowMs: number,
  ): void {
    const { distance } = this;
    const begin = this.nbytes;
    this.postponeCheckpoint(); // It may fail.
    let count = 0;
    this.startsSeries = true;
    for (const part of parts) {
      this.append('state', nowMs, part);
      count++;
    }
    this.append('checkpoint', nowMs, { ...checkpoint, parts: count });
    this.endBytes = this.nbytes;
    const least = distance.ratio * (this.nbytes - begin);
    this.dueBytes = this.nbytes + Math.max(distance.bytesMin, least);
  }

  /** The next checkpoint is due later, because this one could not be made. */
  postponeCheckpoint(): void {
    this.dueBytes = this.nbytes + this.distance.bytesMin;
  }

  /** The last frame. @param check - absent in a journal */
  end(check: Partial<LogCheck>, nowMs: number): void {
    this.append('end', nowMs, check);
    this.flush();
  }

  /** Hands on what has been gathered. */
  flush(): void {
    if (this.length === 0) return;
    const { chunk, length } = this;
    this.handedOn += length;
    this.length = 0;
    if (chunk.length > CHUNK_BYTES) this.chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    // No Buffer: its `slice`, unlike that of the type that a sink is promised, copies nothing.
    this.sink(new Uint8Array(chunk.buffer, chunk.byteOffset, length));
  }

  /**
   * Adds a frame.
   * @param mark - see `FramePlace.mark`
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` when the payload is no plain data, `ERR_FRAME` when it is too large for a
   *   reader; nothing is added then
   */
  append(kind: FrameKind, timeMs: number, payload: unknown, mark = this.unsynced): void {
    const { startsSeries } = this;
    if (startsSeries) this.codec.restart();
    // When this one cannot be written, the next one cannot refer to it.
    this.startsSeries = true;
    const encoded = this.codec.encodeShared(payload);
    const bodyLength = BODY_HEADER_BYTES + encoded.length;
    if (bodyLength > FRAME_BYTES_MAX) {
      throw new YardmasterError(
        'ERR_FRAME',
        `a ${kind} of ${encoded.length} bytes does not fit in a frame of a log, which has at most ${FRAME_BYTES_MAX} bytes`,
        { nbytes: encoded.length, frameBytesMax: FRAME_BYTES_MAX },
      );
    }
    const needed = FRAME_HEADER_BYTES + bodyLength;
    if (this.length + needed > this.chunk.length) {
      this.flush();
      if (needed > CHUNK_BYTES) this.chunk = Buffer.allocUnsafe(needed);
    }
    const { chunk, length: start } = this;
    const body = start + FRAME_HEADER_BYTES;
    const number = FRAME_KINDS.indexOf(kind) | (startsSeries ? STARTS_SERIES : 0);
    chunk.writeUInt32LE(((mark << 8) | number) >>> 0, body);
    chunk.writeUInt32LE(this.sequence % 2 ** 32, body + 4);
    chunk.writeUInt32LE(Math.floor(this.sequence / 2 ** 32), body + 8);
    chunk.writeDoubleLE(timeMs, body + 12);
    chunk.set(encoded, body + BODY_HEADER_BYTES);
    chunk.writeUInt32LE(bodyLength, start);
    chunk.writeUInt32LE(crc32c(chunk.subarray(body, body + bodyLength)), start + 4);
    this.length += needed;
    this.sequence++;
    this.startsSeries = false;
  }

  private get unsynced(): number {
    return this.header.holds === 'all' ? 0 : Math.min(this.sequence - this.syncedFrames, MARK_MASK);
  }
}

/** The part of a stimulus that a kernel reads: neither how tasks are computed nor the results that come along. */
function decisive(stimulus: Stimulus): unknown {
  if (stimulus.op === 'update-graph') {
    const tasks = stimulus.tasks.map((task) =>
      task.runSpec === undefined ? task : { ...task, runSpec: meaningOf(task.runSpec) ?? OPAQUE },
    );
    return { ...stimulus, tasks };
  }
  if (stimulus.op !== 'task-finished' || stimulus.value === undefined) return stimulus;
  // Codecs leave it out. A field that is deleted would turn the copy into a slow dictionary, once a task.
  return { ...stimulus, value: undefined };
}
