import { YardmasterError } from '../api/errors.ts';
import { OPAQUE, type StatePart } from '../kernel/state-parts.ts';
import { OPERATIONS } from '../messages/operations.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import {
  BODY_HEADER_BYTES,
  crc32c,
  FILE_HEADER_BYTES,
  FORMAT_VERSION,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type FrameKind,
  type LogCheck,
  type LoggedPolicies,
  type LogHeader,
  MAGIC,
  type PayloadCodec,
  type RecordingCheckpoint,
} from './format.ts';
import type { KernelLog } from './recording-kernel.ts';

/** Frames are gathered up to this size before they are handed on. */
const CHUNK_BYTES = 128 * 1024;

/** Takes bytes for good. Never throws: what fails to be written is the receiver's concern. */
export type LogSink = (bytes: Uint8Array) => void;

/** Makes the bytes of a log. Writes nowhere itself. */
export class LogWriter {
  private chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  private length = 0;
  private sequence = 0;
  private handedOn = 0;

  /** @param isShared - the sink has used the bytes when it returns: they are overwritten then */
  constructor(
    private readonly codec: PayloadCodec,
    private readonly sink: LogSink,
    private readonly isShared = false,
  ) {
    const head = Buffer.alloc(FILE_HEADER_BYTES);
    head.set(MAGIC);
    head.writeUInt32LE(FORMAT_VERSION, MAGIC.length);
    this.chunk.set(head);
    this.length = head.length;
  }

  /** Bytes so far. */
  get nbytes(): number {
    return this.handedOn + this.length;
  }

  /** Frames so far. */
  get frames(): number {
    return this.sequence;
  }

  /**
   * Adds a frame.
   * @param mark - see `FramePlace.mark`
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` when the payload is no plain data; nothing is added then
   */
  append(kind: FrameKind, timeMs: number, payload: unknown, mark = 0): void {
    const encoded = this.codec.encodeShared(payload);
    const bodyLength = BODY_HEADER_BYTES + encoded.length;
    const needed = FRAME_HEADER_BYTES + bodyLength;
    if (this.length + needed > this.chunk.length) {
      this.flush();
      if (needed > CHUNK_BYTES) this.chunk = Buffer.allocUnsafe(needed);
    }
    const { chunk, length: start } = this;
    const body = start + FRAME_HEADER_BYTES;
    chunk.writeUInt32LE(((mark << 8) | FRAME_KINDS.indexOf(kind)) >>> 0, body);
    chunk.writeUInt32LE(this.sequence % 2 ** 32, body + 4);
    chunk.writeUInt32LE(Math.floor(this.sequence / 2 ** 32), body + 8);
    chunk.writeDoubleLE(timeMs, body + 12);
    chunk.set(encoded, body + BODY_HEADER_BYTES);
    chunk.writeUInt32LE(bodyLength, start);
    chunk.writeUInt32LE(crc32c(chunk.subarray(body, body + bodyLength)), start + 4);
    this.length += needed;
    this.sequence++;
  }

  /** Hands on what has been gathered. */
  flush(): void {
    if (this.length === 0) return;
    this.handedOn += this.length;
    this.sink(this.chunk.subarray(0, this.length));
    if (!this.isShared || this.chunk.length > CHUNK_BYTES) {
      this.chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    }
    this.length = 0;
  }
}

/** The estimated size of a task in a checkpoint. */
const TASK_STATE_BYTES = 50;

/** The distance between checkpoints. */
export interface CheckpointDistance {
  /** Bytes of other frames between two of them, at least. */
  readonly bytesMin: number;
  /** And so many times the bytes of the one before. */
  readonly ratio: number;
}

/**
 * A byte of a checkpoint takes about four times as long to make as the whole handling of the tasks that a byte of other
 * frames stands for: so checkpoints add some two percent to what the scheduler spends.
 */
export const CHECKPOINT_DISTANCE: CheckpointDistance = { bytesMin: 8 * 2 ** 20, ratio: 200 };

/** Writes what a kernel is handed as the frames of a log. */
export class KernelLogWriter implements KernelLog {
  private readonly writer: LogWriter;
  private dueBytes: number;
  /** The offset at which the last checkpoint ended. */
  private endBytes = 0;

  constructor(
    codec: PayloadCodec,
    sink: LogSink,
    header: LogHeader,
    nowMs: number,
    private readonly distance = CHECKPOINT_DISTANCE,
  ) {
    this.writer = new LogWriter(codec, sink);
    this.dueBytes = distance.bytesMin;
    this.writer.append('header', nowMs, header);
  }

  /** Bytes so far. */
  get nbytes(): number {
    return this.writer.nbytes;
  }

  isCheckpointDue(tasks: number): boolean {
    const { nbytes } = this.writer;
    if (nbytes < this.dueBytes) return false;
    // The state may have grown since the last one, or there was none.
    return nbytes - this.endBytes >= this.distance.ratio * tasks * TASK_STATE_BYTES;
  }

  stimulus(stimulus: Stimulus, nowMs: number, mark: number): void {
    try {
      this.writer.append('stimulus', nowMs, withoutValue(stimulus), mark);
    } catch (thrown) {
      if (!YardmasterError.is(thrown) || stimulus.op !== 'update-graph') throw thrown;
      const tasks = stimulus.tasks.map((task) =>
        task.runSpec === undefined ? task : { ...task, runSpec: OPAQUE },
      );
      this.writer.append('stimulus', nowMs, { ...stimulus, tasks }, mark);
    }
  }

  policies(policies: LoggedPolicies, nowMs: number): void {
    this.writer.append('policies', nowMs, policies);
  }

  check(check: LogCheck, nowMs: number): void {
    this.writer.append('check', nowMs, check);
  }

  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<RecordingCheckpoint, 'parts'>,
    nowMs: number,
  ): void {
    const { writer, distance } = this;
    const begin = writer.nbytes;
    this.postponeCheckpoint(); // It may fail.
    let count = 0;
    for (const part of parts) {
      writer.append('state', nowMs, part);
      count++;
    }
    writer.append('checkpoint', nowMs, { ...checkpoint, parts: count });
    this.endBytes = writer.nbytes;
    const least = distance.ratio * (writer.nbytes - begin);
    this.dueBytes = writer.nbytes + Math.max(distance.bytesMin, least);
  }

  /** The next checkpoint is due later, because this one could not be made. */
  postponeCheckpoint(): void {
    this.dueBytes = this.writer.nbytes + this.distance.bytesMin;
  }

  /** The last frame. */
  end(check: LogCheck, nowMs: number): void {
    this.writer.append('end', nowMs, check);
    this.writer.flush();
  }

  /** Hands on what has been gathered. */
  flush(): void {
    this.writer.flush();
  }
}

/** Results that come along pass by the kernel, so a replay does not need them. */
function withoutValue(stimulus: Stimulus): unknown {
  if (stimulus.op !== 'task-finished' || stimulus.value === undefined) return stimulus;
  // Codecs leave it out. A field that is deleted would turn the copy into a slow dictionary, once a task.
  return { ...stimulus, value: undefined };
}

/** The entry that has to be written before the stimulus is handled; undefined: none. */
export function entryOf(stimulus: Stimulus, nextRunId: number): Stimulus | undefined {
  if (!OPERATIONS[stimulus.op].isJournalled) return undefined;
  if (stimulus.op !== 'update-graph') return stimulus;
  return { ...stimulus, firstRunIds: [nextRunId] };
}

/** Number of the report of a client that the stimulus is; undefined when it comes from elsewhere. */
export function reportNumberOf(stimulus: Stimulus): number | undefined {
  return 'client' in stimulus ? reportNumber(stimulus.client, stimulus.stimulusId) : undefined;
}

/** The number in an id that the client has given to a report; undefined: it is an id of somebody else. */
export function reportNumber(client: string, stimulusId: string): number | undefined {
  const suffix = reportId('', client, '');
  const end = stimulusId.lastIndexOf('-') + 1;
  if (!stimulusId.slice(0, end).endsWith(suffix)) return undefined;
  // Of any operation: a graph that is refused becomes a release of its keys. An id of the scheduler names none before the
  // client: `remove-client-5` is no report of a client "client".
  if (!Object.hasOwn(OPERATIONS, stimulusId.slice(0, end - suffix.length))) return undefined;
  const number = Number(stimulusId.slice(end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The id that a client gives to a report. */
export function reportId(op: string, client: string, number: number | string): string {
  return `${op}-${client.slice(-12)}-${number}`;
}
