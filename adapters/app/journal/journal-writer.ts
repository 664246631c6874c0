import type { Clock, Timer } from '../../../core/api/index.ts';
import { VERSION } from '../../../core/api/version.ts';
import { type LogHeader, MARK_MASK } from '../../../core/log/format.ts';
import { LogWriter } from '../../../core/log/log-writer.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { beforeTurnsEnd } from '../../../core/shared/turn.ts';
import type { FileSystem } from '../../log/file-system.ts';
import { SegmentFile } from '../../log/segment-file.ts';
import { type Durability, journalCodec } from './journal-options.ts';

/** How a segment is written. */
interface WriterOptions {
  readonly durability: Durability;
  readonly header: Pick<LogHeader, 'schedulerId' | 'segment'>;
  readonly clock: Clock;
  readonly files: FileSystem;
  /** The reports of a client up to this number are written, as the durability says. */
  readonly onCommit: (client: string, upTo: number) => void;
  /** The file cannot be put on the disk. */
  readonly onError: (error: Error) => void;
}

/**
 * Writes one segment. The entries of one turn of the event loop are written at once, before anything is sent to
 * peers, and put on the disk at once, while those of the next turns are already gathered.
 */
export class JournalWriter {
  private readonly log: LogWriter;
  private acknowledgements = new Map<string, number>();
  private isDue = false;
  private isSyncing = false;
  private isOver = false;
  /** Frames that the operating system has. */
  private writtenFrames = 0;
  /** Frames that are on the disk. */
  private syncedFrames = 0;
  private entries = 0;
  private timer: Timer | undefined;
  private readonly stopFlushing = beforeTurnsEnd(() => this.flush());

  private constructor(
    private readonly file: SegmentFile,
    private readonly options: WriterOptions,
  ) {
    this.log = new LogWriter(journalCodec(), (bytes) => file.write(bytes), true);
  }

  /** @throws Error of the file system */
  static create(path: string, options: WriterOptions): JournalWriter {
    const writer = new JournalWriter(SegmentFile.create(path, options.files), options);
    const { header, clock } = options;
    const config = {};
    const payload = { version: VERSION, createdAtMs: Date.now(), config, folder: '', ...header };
    writer.log.append('header', clock.nowMs(), payload satisfies LogHeader);
    writer.syncAtIntervals();
    return writer;
  }

  get nbytes(): number {
    return this.file.nbytes;
  }

  /** Nothing is being put on the disk. */
  get isIdle(): boolean {
    return !this.isSyncing;
  }

  /** @throws Error of the file system */
  checkpoint(entries: Iterable<Stimulus>, nowMs: number): void {
    for (const entry of entries) this.append(entry, nowMs);
    this.log.append('checkpoint', nowMs, { entries: this.entries }, this.unsyncedFrames);
    this.syncNow();
  }

  /**
   * The operating system has it before anything is sent at the end of this turn of the event loop.
   * @throws Error of the file system; YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME`: nothing is written then
   */
  write(entry: Stimulus, nowMs: number): void {
    this.append(entry, nowMs);
    this.schedule();
  }

  /** Says so to the client when all that was written until now is on the disk. */
  acknowledge(client: string, upTo: number): void {
    this.acknowledgements.set(client, upTo);
    this.schedule();
  }

  /** @throws Error of the file system */
  close(): void {
    this.stop();
    this.syncNow();
    // Attests the entries before it: damage to them cannot be taken for the end of an unfinished write.
    this.log.append('checkpoint', this.options.clock.nowMs(), { entries: this.entries });
    this.log.flush();
    this.file.close();
    this.commit(this.acknowledgements);
  }

  /** Closes the file without a promise that anything of it is on the disk. */
  abandon(): void {
    this.stop();
    this.file.close();
  }

  /** Each frame says how many of those before it may be missing after a loss of power. */
  private append(entry: Stimulus, nowMs: number): void {
    this.log.append('entry', nowMs, entry, this.unsyncedFrames);
    this.entries++;
  }

  private get unsyncedFrames(): number {
    return Math.min(this.log.frames - this.syncedFrames, MARK_MASK);
  }

  private syncNow(): void {
    this.log.flush();
    this.file.syncNow();
    this.writtenFrames = this.log.frames;
    this.syncedFrames = this.log.frames;
  }

  private stop(): void {
    this.isOver = true;
    this.stopFlushing();
    this.timer?.cancel();
  }

  /** The operating system has all entries. */
  flush(): void {
    if (this.isOver) return;
    try {
      this.log.flush();
      this.writtenFrames = this.log.frames;
    } catch (error) {
      this.options.onError(error as Error);
    }
  }

  /** Once a turn of the event loop. */
  private schedule(): void {
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.endGroup();
    });
  }

  private endGroup(): void {
    this.flush();
    if (this.isOver || this.isSyncing) return;
    if (this.options.durability === 'commit') {
      this.syncInBackground();
      return;
    }
    const { acknowledgements } = this;
    this.acknowledgements = new Map();
    this.commit(acknowledgements);
  }

  private syncAtIntervals(): void {
    const { durability, clock } = this.options;
    if (typeof durability !== 'object' || this.isOver) return;
    this.timer = clock.setTimer(durability.intervalMs, () => {
      this.syncInBackground();
      this.syncAtIntervals();
    });
  }

  private syncInBackground(): void {
    if (this.isSyncing || this.file.isSynced) return;
    const { acknowledgements, writtenFrames } = this;
    this.acknowledgements = new Map();
    this.isSyncing = true;
    this.file.sync((error) => {
      this.isSyncing = false;
      if (error !== null) this.options.onError(error);
      else {
        this.syncedFrames = writtenFrames;
        this.commit(acknowledgements);
      }
      if (!this.isOver && !this.file.isSynced) this.schedule();
    });
  }

  private commit(acknowledgements: ReadonlyMap<string, number>): void {
    for (const [client, upTo] of acknowledgements) this.options.onCommit(client, upTo);
  }
}
