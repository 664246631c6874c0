import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { VERSION } from '../../core/api/plugin.ts';
import type { Services } from '../../core/api/token.ts';
import { CONFIG, CONFIG_FOLDER, SERVER_ID } from '../../core/host/tokens.ts';
import type { StatePart } from '../../core/kernel/snapshot.ts';
import type { LogCheck, LogCheckpoint, LoggedPolicies, LogHeader } from '../../core/log/format.ts';
import { type CheckpointDistance, LogWriter } from '../../core/log/log-writer.ts';
import type { KernelLog } from '../../core/log/recording-kernel.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { beforeTurnsEnd } from '../../core/shared/turn.ts';
import { type FileSystem, SegmentFile } from '../log/segment-file.ts';
import { logCodec, segmentPath, segmentsOf } from './read-log.ts';

/** The moment at which an entry counts as written. */
export type Durability =
  /** The entry counts when it is on the disk, where it survives a power failure. */
  | 'commit'
  /** The entry counts when the operating system has it, which puts it on the disk within this time. */
  | { readonly intervalMs: number }
  /** The entry counts when the operating system has it, which puts it on the disk when it likes. */
  | 'none';

const INTERVAL = /^interval=(\d+)(ms|s)$/;

/** @throws YardmasterError `ERR_CONFIG` */
export function durabilityOf(text: string): Durability {
  if (text === 'commit' || text === 'none') return text;
  const [, amount, unit] = INTERVAL.exec(text) ?? [];
  const intervalMs = Number(amount) * (unit === 's' ? 1000 : 1);
  if (intervalMs > 0) return { intervalMs };
  throw new YardmasterError(
    'ERR_CONFIG',
    `the durability "${text}" is none of commit, interval=50ms and none`,
    { durability: text },
  );
}

/** The part of a log that is kept. */
export interface Retention {
  /** All segments together; Infinity: any number. */
  readonly bytes: number;
  /** The age beyond which segments are dropped. */
  readonly ageMs: number;
}

interface LogOptions {
  /** The only file, or the folder of segments. */
  readonly target: SegmentFile | string;
  readonly header: Omit<LogHeader, 'segment'>;
  /** Of a folder. Default: the newest segment, which begins with all that those before it led to. */
  readonly keep?: Retention;
  /** Number of the first segment. Default 1. */
  readonly segment?: number;
  readonly distance: CheckpointDistance;
  /** Undefined: what is written is gathered for up to a second, and is on the disk when the log is closed. */
  readonly durability?: Durability;
  readonly clock: Clock;
  readonly files: FileSystem;
  /** The log cannot be written any more. Called once. */
  readonly onError: (error: Error) => void;
  /** The reports of a client up to this number are written, as the durability says. */
  readonly onCommit?: (client: string, upTo: number) => void;
}

/** The number of segments that the kept part is divided into. */
export const KEPT_SEGMENTS = 8;
/** The longest time for which frames are gathered where no durability is promised. */
const GATHER_MS = 1000;

/**
 * Writes a log: a recording, or a journal. It has one file, or a folder of segments that each begin with a checkpoint and can
 * be read by themselves. Where it is durable, the frames of one turn of the event loop are written at once, before anything
 * is sent to peers, and put on the disk at once, while those of the next turns are already gathered.
 */
export class LogOutput implements KernelLog {
  private readonly kept: Segment[] = [];
  private readonly stopFlushing: () => void;
  private syncTimer: Timer | undefined;
  private isOld = false;
  private isOver = false;
  private acknowledgements = new Map<string, number>();
  private isDue = false;

  constructor(private readonly options: LogOptions) {
    if (options.durability !== undefined) {
      this.stopFlushing = beforeTurnsEnd(() => this.flush());
      this.syncAtIntervals();
      return;
    }
    const timer = setInterval(() => this.gathered(), GATHER_MS).unref();
    this.stopFlushing = () => clearInterval(timer);
  }

  /** Bytes of what is kept. */
  get nbytes(): number {
    return this.kept.reduce((sum, { writer }) => sum + writer.nbytes, 0);
  }

  isCheckpointDue(tasks: number): boolean {
    const { current } = this;
    return current?.isIdle === true && (this.isOld || current.writer.isCheckpointDue(tasks));
  }

  /** @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME`: nothing is written then */
  stimulus(stimulus: Stimulus, nowMs: number, mark?: number): void {
    const { current } = this;
    if (current === undefined || this.isOver) return;
    current.writer.stimulus(stimulus, nowMs, mark);
    if (current.error !== undefined) this.fail(current.error);
    else if (this.options.durability !== undefined) this.schedule();
  }

  policies(policies: LoggedPolicies, nowMs: number): void {
    this.current?.writer.policies(policies, nowMs);
  }

  check(check: LogCheck, nowMs: number): void {
    this.current?.writer.check(check, nowMs);
  }

  /**
   * The next segment begins with it, or it is written behind what the file has.
   * @throws Error of the file system; YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME`: nothing is written then
   */
  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<LogCheckpoint, 'parts'>,
    nowMs: number,
  ): void {
    const { current: before, options } = this;
    if (before !== undefined && typeof options.target !== 'string') {
      before.writer.checkpoint(parts, checkpoint, nowMs);
      return;
    }
    const isDurable = options.durability !== undefined;
    this.isOld = false;
    let next: Segment | undefined;
    try {
      next = this.begin(before, nowMs);
      next.writer.checkpoint(parts, checkpoint, nowMs);
      if (isDurable) next.syncNow();
      else next.flush();
    } catch (error) {
      next?.discard();
      before?.writer.postponeCheckpoint();
      if (before !== undefined && !isUnserialisable(error)) this.fail(error as Error);
      throw error;
    }
    this.kept.push(next);
    if (before !== undefined) {
      // What is durable is in the new segment, and the old one is deleted.
      if (options.keep === undefined) before.abandon();
      else inBackground(before.close(), (error) => this.fail(error));
    }
    this.drop(nowMs);
  }

  /** Says so to the client when all that was written until now counts. */
  acknowledge(client: string, upTo: number): void {
    this.acknowledgements.set(client, upTo);
    this.schedule();
  }

  /** The operating system has all frames. */
  flush(): void {
    if (this.isOver) return;
    try {
      this.current?.flush();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  /** Writes the end, and puts everything on the disk, at once. @throws Error of the file system */
  end(): void {
    this.stop();
    this.current?.end(this.options.clock.nowMs());
    this.commit();
  }

  /** Writes the end, and puts everything on the disk, in the background. Rejects with an error of the file system. */
  async close(check?: LogCheck): Promise<void> {
    if (this.isOver) return;
    this.stop();
    if (check !== undefined) this.current?.writer.end(check, this.options.clock.nowMs());
    await this.current?.close();
  }

  /** Closes the file without a promise that anything of it is on the disk. */
  abandon(): void {
    this.stop();
    this.current?.abandon();
  }

  private get current(): Segment | undefined {
    return this.kept.at(-1);
  }

  private begin(before: Segment | undefined, nowMs: number): Segment {
    const { target, header, files, distance, segment: first = 1 } = this.options;
    const segment = before === undefined ? first : before.number + 1;
    const isFolder = typeof target === 'string';
    const file = isFolder ? SegmentFile.create(segmentPath(target, segment), files) : target;
    return new Segment(file, { ...header, segment }, nowMs, distance);
  }

  private drop(nowMs: number): void {
    const { kept, options } = this;
    const { target, files, keep, distance } = options;
    if (typeof target !== 'string') return;
    if (keep === undefined) {
      kept.splice(0, kept.length - 1);
      const [newest] = kept as [Segment];
      for (const number of segmentsOf(target, files)) {
        if (number < newest.number) files.rmSync(segmentPath(target, number), { force: true });
      }
      return;
    }
    // So that with the newest one, when it is full, there is no more than is kept.
    while (kept.length > 1) {
      const [oldest, next] = kept as [Segment, Segment];
      const isTooMuch = this.nbytes + distance.bytesMin > keep.bytes;
      if (!isTooMuch && nowMs - next.begunMs <= keep.ageMs) return;
      kept.shift();
      oldest.discard();
    }
  }

  private gathered(): void {
    this.flush();
    const { current, options } = this;
    if (current === undefined || options.keep === undefined) return;
    this.isOld = options.clock.nowMs() - current.begunMs >= options.keep.ageMs / KEPT_SEGMENTS;
  }

  /** Once a turn of the event loop. */
  private schedule(): void {
    if (this.isDue || this.isOver) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.endGroup();
    });
  }

  private endGroup(): void {
    if (this.options.durability === 'commit') {
      this.syncInBackground();
      return;
    }
    this.flush();
    if (!this.isOver) this.commit();
  }

  private syncAtIntervals(): void {
    const { durability, clock } = this.options;
    if (typeof durability !== 'object' || this.isOver) return;
    this.syncTimer = clock.setTimer(durability.intervalMs, () => {
      this.syncInBackground();
      this.syncAtIntervals();
    });
  }

  private syncInBackground(): void {
    this.flush();
    const { current } = this;
    if (this.isOver || current?.isIdle !== true) return;
    if (current.isSynced) {
      this.commit();
      return;
    }
    const acknowledgements = this.takeAcknowledgements();
    current.sync((error) => {
      if (error !== undefined) this.fail(error);
      else this.commit(acknowledgements);
      if (!this.isOver && this.current?.isSynced === false) this.schedule();
    });
  }

  private takeAcknowledgements(): ReadonlyMap<string, number> {
    const { acknowledgements } = this;
    this.acknowledgements = new Map();
    return acknowledgements;
  }

  private commit(acknowledgements = this.takeAcknowledgements()): void {
    for (const [client, upTo] of acknowledgements) this.options.onCommit?.(client, upTo);
  }

  private stop(): void {
    this.isOver = true;
    this.stopFlushing();
    this.syncTimer?.cancel();
  }

  private fail(error: Error): void {
    if (this.isOver) return;
    this.abandon();
    this.options.onError(error);
  }
}

class Segment {
  readonly writer: LogWriter;
  readonly number: number;
  /** The file could not be written. */
  error: Error | undefined;
  private isSyncing = false;
  /** Frames that the operating system has. */
  private writtenFrames = 0;

  /** @param begunMs - on the scheduler's clock */
  constructor(
    private readonly file: SegmentFile,
    header: LogHeader,
    readonly begunMs: number,
    distance: CheckpointDistance,
  ) {
    this.number = header.segment;
    const sink = (bytes: Uint8Array): void => this.write(bytes);
    this.writer = new LogWriter(logCodec(), sink, header, begunMs, distance);
  }

  /** Nothing is being put on the disk. */
  get isIdle(): boolean {
    return !this.isSyncing;
  }

  get isSynced(): boolean {
    return this.file.isSynced;
  }

  /** @throws Error of the file system */
  flush(): void {
    this.writer.flush();
    if (this.error !== undefined) throw this.error;
    this.writtenFrames = this.writer.frames;
  }

  /** @throws Error of the file system */
  syncNow(): void {
    this.flush();
    this.file.syncNow();
    this.writer.syncedFrames = this.writer.frames;
  }

  /** Puts what was written on the disk, in the background. One call at a time. */
  sync(done: (error: Error | undefined) => void): void {
    const { writtenFrames } = this;
    this.isSyncing = true;
    this.file.sync((error) => {
      this.isSyncing = false;
      if (error === null) this.writer.syncedFrames = writtenFrames;
      done(error ?? undefined);
    });
  }

  /**
   * Puts everything on the disk, at once, and then the last frame, which attests those before it: damage to them cannot be
   * taken for the end of an unfinished write.
   * @throws Error of the file system
   */
  end(nowMs: number): void {
    this.syncNow();
    this.writer.end({}, nowMs);
    this.file.close();
  }

  /** Puts everything on the disk, in the background. Rejects with an error of the file system. */
  async close(): Promise<void> {
    try {
      this.flush();
      await new Promise<void>((resolve, reject) => {
        this.sync((error) => (error === undefined ? resolve() : reject(error)));
      });
    } finally {
      this.file.close();
    }
  }

  abandon(): void {
    this.file.close();
  }

  /** Closes and deletes the file. What cannot be deleted stays. */
  discard(): void {
    this.file.remove();
  }

  private write(bytes: Uint8Array): void {
    if (this.error !== undefined) return;
    try {
      this.file.write(bytes);
    } catch (error) {
      this.error = error as Error;
    }
  }
}

/** The header of a log that begins now. */
export function headerOf(
  services: Services,
  holds: LogHeader['holds'],
): Omit<LogHeader, 'segment'> {
  return {
    holds,
    version: VERSION,
    schedulerId: services.get(SERVER_ID),
    createdAtMs: Date.now(),
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

/** True when the fault is of what was to be written, and not of the disk. */
export function isUnserialisable(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return code === 'ERR_NOT_SERIALISABLE' || code === 'ERR_FRAME' || code === 'ERR_POLICY';
}
