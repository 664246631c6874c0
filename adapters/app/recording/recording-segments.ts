import { mkdir, rm } from 'node:fs/promises';
import { type Clock, type RecordingInfo, YardmasterError } from '../../../core/api/index.ts';
import type { Services } from '../../../core/api/token.ts';
import type {
  LogCheck,
  LogHeader,
  LoggedPolicies,
  RecordingCheckpoint,
} from '../../../core/log/format.ts';
import {
  CHECKPOINT_DISTANCE,
  type CheckpointDistance,
  KernelLogWriter,
} from '../../../core/log/kernel-log-writer.ts';
import type { LogSink } from '../../../core/log/log-writer.ts';
import type { KernelLog } from '../../../core/log/recording-kernel.ts';
import type { StatePart } from '../../../core/kernel/snapshot/state-parts.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { CLOCK } from '../../../core/plugin-host/injection/tokens.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { AppendFile } from '../../log/append-file.ts';
import type { RecordingKeep } from './recording-keep.ts';
import { segmentFile } from './recording-paths.ts';
import { FLUSH_MS, headerOf, type RecordingTarget } from './recording-target.ts';

/** What is kept is divided into so many segments. */
const SEGMENTS = 8;

/** A file of the folder. It can be read by itself. */
interface Segment {
  readonly number: number;
  readonly file: AppendFile;
  readonly writer: KernelLogWriter;
  /** On the scheduler's clock. */
  readonly begunMs: number;
  /** Of the file, when another one has followed. */
  closed?: Promise<void>;
}

/** A recording of which only the latest part is kept: a folder of files that each begin with a checkpoint. */
export class RecordingSegments implements RecordingTarget, KernelLog {
  private readonly startedAtMs = Date.now();
  private readonly kept: Segment[] = [];
  private readonly codec = new MsgpackCodec();
  private readonly distance: CheckpointDistance;
  private header: LogHeader | undefined;
  private clock: Clock | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isOld = false;
  /** Files that are being closed or deleted. */
  private readonly leaving = new Set<Promise<unknown>>();

  private constructor(
    private readonly folder: string,
    private readonly keep: RecordingKeep,
    private readonly onError: (error: Error) => void,
    private readonly first: AppendFile,
  ) {
    // A bound of the size is kept, whatever checkpoints cost then.
    const bytesMin = keep.bytes / SEGMENTS;
    this.distance = bytesMin === Infinity ? CHECKPOINT_DISTANCE : { bytesMin, ratio: 1 };
  }

  /**
   * Makes the folder; it must not exist yet.
   * @param onError - called once, when the recording cannot be written any more
   * @throws YardmasterError `ERR_LOG`
   */
  static async open(
    folder: string,
    keep: RecordingKeep,
    onError: (error: Error) => void,
  ): Promise<RecordingSegments> {
    try {
      await mkdir(folder, { mode: 0o700 });
    } catch (cause) {
      throw new YardmasterError(
        'ERR_LOG',
        `the folder ${folder} of a recording cannot be made: ${(cause as Error).message}`,
        { folder },
        { cause },
      );
    }
    const first = await AppendFile.create(segmentFile(folder, 1), onError);
    return new RecordingSegments(folder, keep, onError, first);
  }

  get info(): RecordingInfo {
    const bytes = this.kept.reduce((sum, { writer }) => sum + writer.nbytes, 0);
    return { file: this.folder, startedAtMs: this.startedAtMs, bytes };
  }

  begin(services: Services): KernelLog {
    this.clock = services.get(CLOCK);
    this.header = headerOf(services, this.startedAtMs);
    const { first: file } = this;
    const begunMs = this.clock.nowMs();
    const writer = this.writer((bytes) => file.append(bytes), begunMs);
    this.kept.push({ number: 1, file, writer, begunMs });
    this.timer = setInterval(() => {
      this.tick();
    }, FLUSH_MS).unref();
    return this;
  }

  isCheckpointDue(tasks: number): boolean {
    return this.isOld || this.current.writer.isCheckpointDue(tasks);
  }

  stimulus(stimulus: Stimulus, nowMs: number, mark: number): void {
    this.current.writer.stimulus(stimulus, nowMs, mark);
  }

  policies(policies: LoggedPolicies, nowMs: number): void {
    this.current.writer.policies(policies, nowMs);
  }

  check(check: LogCheck, nowMs: number): void {
    this.current.writer.check(check, nowMs);
  }

  /** The next segment begins with it. */
  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<RecordingCheckpoint, 'parts'>,
    nowMs: number,
  ): void {
    const before = this.current;
    this.isOld = false;
    const pending: Uint8Array[] = [];
    // The file is made when there is something to write: the checkpoint may fail.
    const target: { file?: AppendFile } = {};
    const writer = this.writer((bytes) => {
      if (target.file === undefined) pending.push(bytes);
      else target.file.append(bytes);
    }, nowMs);
    try {
      writer.checkpoint(parts, checkpoint, nowMs);
    } catch (error) {
      before.writer.postponeCheckpoint();
      throw error;
    }
    before.writer.flush();
    this.settle((before.closed = before.file.close()));
    const number = before.number + 1;
    const file = AppendFile.begin(segmentFile(this.folder, number), this.onError);
    target.file = file;
    for (const bytes of pending) file.append(bytes);
    this.kept.push({ number, file, writer, begunMs: nowMs });
    writer.flush();
    this.dropOldest(nowMs);
  }

  flush(): void {
    this.current.writer.flush();
  }

  end(check: LogCheck): void {
    this.current.writer.end(check, this.clock?.nowMs() ?? 0);
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await (this.kept.at(-1)?.file ?? this.first).close();
    while (this.leaving.size > 0) await Promise.all(this.leaving);
  }

  private get current(): Segment {
    return this.kept.at(-1) as Segment;
  }

  private writer(sink: LogSink, nowMs: number): KernelLogWriter {
    return new KernelLogWriter(this.codec, sink, this.header as LogHeader, nowMs, this.distance);
  }

  private tick(): void {
    this.flush();
    const ageMs = (this.clock?.nowMs() ?? 0) - this.current.begunMs;
    this.isOld = ageMs >= this.keep.ageMs / SEGMENTS;
  }

  /** So that with the newest one, when it is full, there is no more than is kept. */
  private dropOldest(nowMs: number): void {
    const { kept, keep, distance } = this;
    while (kept.length > 1) {
      const [oldest, next] = kept as [Segment, Segment];
      const isTooMuch = this.info.bytes + distance.bytesMin > keep.bytes;
      if (!isTooMuch && nowMs - next.begunMs <= keep.ageMs) return;
      kept.shift();
      this.drop(oldest);
    }
  }

  private drop({ file, closed = Promise.resolve() }: Segment): void {
    this.settle(closed.then(() => rm(file.path, { force: true })));
  }

  /** What cannot be deleted stays. */
  private settle(leaving: Promise<unknown>): void {
    const settled = leaving.catch(() => undefined).finally(() => this.leaving.delete(settled));
    this.leaving.add(settled);
  }
}
