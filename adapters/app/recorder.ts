import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { readdirSync, statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type Clock,
  type Logger,
  type RecordingInfo,
  YardmasterError,
} from '../../core/api/index.ts';
import { VERSION } from '../../core/api/plugin.ts';
import { byFactory, type Provider, type Services } from '../../core/api/token.ts';
import type { StatePart } from '../../core/kernel/state-parts.ts';
import {
  BODY_HEADER_BYTES,
  FILE_HEADER_BYTES,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type FrameKind,
  type LogCheck,
  type LoggedPolicies,
  type LogHeader,
  type RecordingCheckpoint,
} from '../../core/log/format.ts';
import {
  CHECKPOINT_DISTANCE,
  type CheckpointDistance,
  KernelLogWriter,
  type LogSink,
} from '../../core/log/log-writer.ts';
import { type KernelLog, RecordingKernel } from '../../core/log/recording-kernel.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { CLOCK, CONFIG, CONFIG_FOLDER, SERVER_ID } from '../../core/host/tokens.ts';
import {
  noFolder,
  notRecording,
  RECORDER,
  type SchedulerRecorder,
} from '../../core/scheduler-host/journal.ts';
import { PortsCompiler } from '../../core/scheduler-host/kernel-ports.ts';
import { kernelOptions } from '../../core/scheduler-host/tokens.ts';
import { parseBytes, parseDurationMs } from '../../core/util/units.ts';
import { MsgpackCodec } from '../codecs/msgpack.ts';
import { removePrivateFolder } from '../log/private-folder.ts';
import { AppendFile, numbersIn, readBytes } from '../log/segment-file.ts';

/** A name that cannot lead out of a folder. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const EXTENSION = '.ylog';

/** A recording under way, from the moment on when it was asked for. */
interface Active {
  readonly path: string;
  file: RecordingTarget | undefined;
  /** The recording was given up before it began. */
  abandon: ((error: YardmasterError) => void) | undefined;
}

/** Records all that the kernel of one scheduler is handed, from its start on or while it runs. */
export class Recorder implements SchedulerRecorder {
  readonly providers: readonly Provider[];
  private services: Services | undefined;
  private active: Active | undefined;

  /** @param folder - for recordings that clients ask for; undefined: they may not */
  constructor(
    private readonly log: Logger,
    private readonly folder?: string,
  ) {
    this.providers = [
      byFactory(RECORDER, (services) => {
        this.services = services;
        return this;
      }),
    ];
  }

  get current(): RecordingInfo | undefined {
    return this.active?.file?.info;
  }

  /**
   * Before the scheduler is made: the providers that have it recorded from its first stimulus on.
   * @param path - of the recording, or with `keep` of its folder; it must not exist yet
   * @throws YardmasterError `ERR_LOG`
   */
  async fromStart(path: string, keep?: RecordingKeep): Promise<readonly Provider[]> {
    const file = await this.open(path, keep);
    this.active = { path, file, abandon: undefined };
    const kernel = byFactory(SchedulerKernel, (services) => {
      const config = services.get(CONFIG);
      const nowMs = services.get(CLOCK).nowMs();
      const ports = services.get(PortsCompiler).compile();
      const recorded = new RecordingKernel(
        kernelOptions(config),
        ports,
        nowMs,
        file.begin(services),
      );
      file.flush(); // A scheduler that is killed in its first second leaves a recording that can be read.
      return recorded;
    });
    return [...this.providers, kernel];
  }

  async start(name = timeName()): Promise<RecordingInfo> {
    const { folder } = this;
    if (folder === undefined) throw noFolder();
    if (!NAME.test(name)) {
      throw new YardmasterError(
        'ERR_PROTOCOL',
        `${JSON.stringify(name.slice(0, 100))} is no name for a recording: use letters, digits, dots, dashes, and no folder`,
        { name: name.slice(0, 100) },
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
      throw new YardmasterError(
        'ERR_LOG',
        `the folder ${folder} cannot be made: ${(cause as Error).message}`,
        { folder },
        { cause },
      );
    });
    return this.startAt(join(folder, name.endsWith(EXTENSION) ? name : name + EXTENSION));
  }

  /**
   * Begins a recording of the scheduler that runs: for the program that started it.
   * @param path - of the recording; it must not exist yet
   * @throws YardmasterError `ERR_LOG`, `ERR_CLOSED`
   */
  async startAt(path: string): Promise<RecordingInfo> {
    const kernel = this.kernel();
    const { active: before } = this;
    if (before !== undefined) {
      throw new YardmasterError(
        'ERR_LOG',
        `the scheduler is being recorded to ${before.path}; end that recording first`,
        { file: before.path },
      );
    }
    const active: Active = { path: resolve(path), file: undefined, abandon: undefined };
    this.active = active;
    let file: RecordingTarget | undefined;
    try {
      const opened = (file = await this.open(active.path));
      await this.begin(kernel, active, opened);
      active.file = opened;
      return opened.info;
    } catch (error) {
      this.active = undefined;
      await file?.close();
      if (file !== undefined) await remove(active.path);
      throw error;
    }
  }

  async stop(): Promise<RecordingInfo> {
    const { active } = this;
    if (active?.file === undefined) throw notRecording();
    this.active = undefined;
    await this.finish(active.file);
    return active.file.info;
  }

  /** Writes the end and closes the file. Never rejects. */
  async close(): Promise<void> {
    const { active } = this;
    this.active = undefined;
    active?.abandon?.(closed());
    if (active?.file !== undefined) await this.finish(active.file);
  }

  /** Closes and deletes the file: the scheduler did not start. Never rejects. */
  async discard(): Promise<void> {
    const { active } = this;
    this.active = undefined;
    await active?.file?.close();
    if (active !== undefined) await remove(active.path);
  }

  private async finish(file: RecordingTarget): Promise<void> {
    const kernel = this.services?.get(SchedulerKernel);
    if (kernel instanceof RecordingKernel && kernel.isRecording) {
      file.end(kernel.checkNow(true));
      kernel.stopRecording();
    }
    await file.close();
  }

  private begin(kernel: RecordingKernel, active: Active, file: RecordingTarget): Promise<void> {
    const services = this.services as Services;
    return new Promise((resolve, reject) => {
      active.abandon = (error) => {
        kernel.stopRecording();
        reject(error);
      };
      if (this.active !== active) return active.abandon(closed());
      kernel.record(
        () => file.begin(services),
        () => {
          active.abandon = undefined;
          file.flush();
          resolve();
        },
        reject,
      );
    });
  }

  private kernel(): RecordingKernel {
    const kernel = this.services?.get(SchedulerKernel);
    if (kernel instanceof RecordingKernel) return kernel;
    throw new YardmasterError(
      'ERR_LOG',
      'the scheduler has a kernel of its own, which cannot be recorded while it runs',
    );
  }

  private open(path: string, keep?: RecordingKeep): Promise<RecordingTarget> {
    const onError = (error: Error): void => {
      this.log.error({ err: error }, `${error.message}; the scheduler continues without recording`);
      this.active = undefined;
      const kernel = this.services?.get(SchedulerKernel);
      if (kernel instanceof RecordingKernel) kernel.stopRecording();
    };
    return keep === undefined
      ? RecordingFile.open(path, onError)
      : RecordingSegments.open(path, keep, onError);
  }
}

function closed(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler was closed before the recording began');
}

/** Of a recording without a name. */
function timeName(): string {
  return new Date().toISOString().replaceAll(':', '-');
}

/** Deletes the file or folder of a recording, if it can. */
async function remove(path: string): Promise<void> {
  try {
    if (!removePrivateFolder(path)) await rm(path, { force: true });
  } catch {
    // It stays.
  }
}

/** The part of a recording that is kept. */
interface RecordingKeep {
  /** All segments together; Infinity: any number. */
  readonly bytes: number;
  /** The age beyond which segments are dropped. */
  readonly ageMs: number;
}

/** Less would be nothing but checkpoints. */
const BYTES_MIN = 2 ** 20;
const AGE_MIN_MS = 1000;

/**
 * Reads `2GB`, `24h`, or both: `2GB,24h`.
 * @throws YardmasterError `ERR_CONFIG`
 */
export function recordingKeepOf(text: string): RecordingKeep {
  let bytes = Infinity;
  let ageMs = Infinity;
  for (const part of text.split(',')) {
    const isBare = /^[\s\d.]*$/.test(part);
    const foundMs = isBare ? undefined : parseDurationMs(part);
    const foundBytes = isBare || foundMs !== undefined ? undefined : parseBytes(part);
    if (foundMs !== undefined && foundMs >= AGE_MIN_MS) ageMs = foundMs;
    else if (foundBytes !== undefined && foundBytes >= BYTES_MIN) bytes = foundBytes;
    else {
      throw new YardmasterError(
        'ERR_CONFIG',
        `"${part.trim()}" does not say how much of a recording to keep: give a size of at least 1MiB, an age of at least 1s, or both, such as 2GB,24h`,
        { keep: text },
      );
    }
  }
  return { bytes, ageMs };
}

/** The number of segments that the kept part is divided into. */
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
class RecordingSegments implements RecordingTarget, KernelLog {
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

  /** Waits for the deletion of segments. What cannot be deleted stays. */
  private settle(leaving: Promise<unknown>): void {
    const settled = leaving.catch(() => undefined).finally(() => this.leaving.delete(settled));
    this.leaving.add(settled);
  }
}

/** The target of a recording. */
interface RecordingTarget {
  readonly info: RecordingInfo;
  /** Writes the header. */
  begin(services: Services): KernelLog;
  /** Hands what was gathered to the file. */
  flush(): void;
  /** Writes the last frame. */
  end(check: LogCheck): void;
  /** Never rejects. */
  close(): Promise<void>;
}

/** The longest time for which entries are gathered before they are written. */
const FLUSH_MS = 1000;

/** The header of a recording that begins now. */
function headerOf(services: Services, createdAtMs: number): LogHeader {
  return {
    version: VERSION,
    schedulerId: services.get(SERVER_ID),
    createdAtMs,
    config: plainPart(services.get(CONFIG)) as Readonly<Record<string, unknown>>,
    folder: services.get(CONFIG_FOLDER),
  };
}

/** The part of a configuration that can be written down: not what was given as an object in code. */
function plainPart(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainPart).filter((item) => item !== undefined);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plainPart(part)]));
}

const SEGMENT = /^part-(\d{6,})\.ylog$/;

/** Path of a file of a recording of which only the latest part is kept. */
function segmentFile(folder: string, number: number): string {
  return join(folder, `part-${String(number).padStart(6, '0')}.ylog`);
}

/**
 * The files of a recording, the oldest first: itself, or those of its folder.
 * @throws YardmasterError `ERR_LOG` when one of them is missing
 */
export function recordingFiles(path: string): readonly string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  const numbers = numbersIn(readdirSync(path), SEGMENT);
  const [first] = numbers;
  if (first === undefined) {
    throw new YardmasterError(
      'ERR_LOG',
      `the folder ${path} holds no recording: give a recording, or the folder of one that was made with --record-keep`,
      { folder: path },
    );
  }
  for (const [index, number] of numbers.entries()) {
    if (number === first + index) continue;
    const missing = segmentFile(path, first + index);
    throw new YardmasterError(
      'ERR_LOG',
      `the recording ${path} lacks ${missing}; each of its files can be read by itself`,
      { folder: path, file: missing },
    );
  }
  return numbers.map((number) => segmentFile(path, number));
}

/** True when this is the folder of a recording, and not of a journal. */
export function isRecordingFolder(path: string): boolean {
  return readdirSync(path).some((name) => SEGMENT.test(name));
}

/** A checkpoint at which a replay can begin. */
export interface CheckpointPlace {
  readonly file: string;
  /** The offset of its first frame, in bytes. */
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

  /** True when the last frame is complete. */
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

/** A recording in one file. */
class RecordingFile implements RecordingTarget {
  private log: KernelLogWriter | undefined;
  private clock: Clock | undefined;
  private timer: NodeJS.Timeout | undefined;
  private startedAtMs = Date.now();

  private constructor(private readonly file: AppendFile) {}

  /**
   * Makes the file; it must not exist yet.
   * @param onError - called once, when it cannot be written any more
   * @throws YardmasterError `ERR_LOG`
   */
  static async open(path: string, onError: (error: Error) => void): Promise<RecordingFile> {
    return new RecordingFile(await AppendFile.create(path, onError));
  }

  get info(): RecordingInfo {
    const { file, startedAtMs, log } = this;
    return { file: file.path, startedAtMs, bytes: log?.nbytes ?? 0 };
  }

  begin(services: Services): KernelLog {
    const clock = services.get(CLOCK);
    this.startedAtMs = Date.now();
    const header = headerOf(services, this.startedAtMs);
    const sink = (bytes: Uint8Array): void => this.file.append(bytes);
    const log = new KernelLogWriter(new MsgpackCodec(), sink, header, clock.nowMs());
    this.clock = clock;
    this.log = log;
    this.timer = setInterval(() => log.flush(), FLUSH_MS).unref();
    return log;
  }

  flush(): void {
    this.log?.flush();
  }

  end(check: LogCheck): void {
    this.log?.end(check, this.clock?.nowMs() ?? 0);
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.file.close();
  }
}
