import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, parse, resolve } from 'node:path';
import { type Logger, type RecordingInfo, YardmasterError } from '../../core/api/index.ts';
import { byFactory, type Provider, type Services } from '../../core/api/token.ts';
import { CLOCK } from '../../core/host/tokens.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { CHECKPOINT_DISTANCE } from '../../core/log/log-writer.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import {
  JOURNAL,
  noFolder,
  notRecording,
  RECORDER,
  type SchedulerRecorder,
} from '../../core/scheduler-host/journal.ts';
import { parseBytes, parseDurationMs } from '../../core/util/units.ts';
import { removePrivateFolder } from '../log/private-folder.ts';
import { SegmentFile, SYSTEM_FILES } from '../log/segment-file.ts';
import { headerOf, KEPT_SEGMENTS, LogOutput, type Retention } from './write-log.ts';

/** A name that cannot lead out of a folder. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const EXTENSION = '.ylog';

/** A recording, from the moment on when it was asked for. */
interface Active {
  readonly path: string;
  readonly startedAtMs: number;
  /** Undefined: it is a folder. */
  readonly file: SegmentFile | undefined;
  readonly keep: Retention | undefined;
  output: LogOutput | undefined;
  /** Gives the recording up before it has begun. */
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
    this.providers = [byFactory(RECORDER, (services) => this.attach(services))];
  }

  get current(): RecordingInfo | undefined {
    const { active } = this;
    return active?.output === undefined ? undefined : infoOf(active);
  }

  /**
   * Before the scheduler is made: it is recorded from its first stimulus on.
   * @param path - of the recording, or with `keep` of its folder; it must not exist yet
   * @param comesBack - the scheduler may be one that is started again as it was: the next number is used then
   * @throws YardmasterError `ERR_LOG`
   */
  fromStart(path: string, keep?: Retention, comesBack = false): void {
    let file = path;
    for (let number = 2; comesBack && existsSync(file); number++) file = numbered(path, number);
    this.active = made(file, keep);
    if (file !== path) this.log.info({ file }, `${path} exists, so the recording is ${file}`);
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
    const active = made(resolve(path));
    this.active = active;
    try {
      await new Promise<void>((begun, failed) => {
        active.abandon = (error) => {
          kernel.stopRecording();
          failed(error);
        };
        kernel.record(() => this.begin(active), begun, failed);
      });
      active.abandon = undefined;
      return infoOf(active);
    } catch (error) {
      if (this.active === active) this.active = undefined;
      discard(active);
      throw error;
    }
  }

  async stop(): Promise<RecordingInfo> {
    const { active } = this;
    if (active?.output === undefined) throw notRecording();
    this.active = undefined;
    const error = await this.finish(active);
    if (error !== undefined) throw error;
    return infoOf(active);
  }

  /** Writes the end and closes the file. Never rejects. */
  async close(): Promise<void> {
    const { active } = this;
    this.active = undefined;
    active?.abandon?.(closed());
    if (active !== undefined) await this.finish(active);
  }

  /** Closes and deletes the file: the scheduler did not start. */
  discard(): void {
    const { active } = this;
    this.active = undefined;
    if (active !== undefined) discard(active);
  }

  /** The journal has given the kernel its state before. */
  private attach(services: Services): this {
    this.services = services;
    services.get(JOURNAL);
    const { active } = this;
    if (active === undefined) return this;
    this.kernel().record(
      () => this.begin(active),
      () => undefined,
      (cause) => {
        throw cause;
      },
    );
    return this;
  }

  private begin(active: Active): LogOutput {
    const { path, file, keep } = active;
    const services = this.services as Services;
    // A bound of the size is kept, whatever checkpoints cost then.
    const bytesMin = (keep?.bytes ?? Infinity) / KEPT_SEGMENTS;
    const output = new LogOutput({
      target: file ?? path,
      header: headerOf(services, 'all'),
      ...(keep === undefined ? {} : { keep }),
      distance: bytesMin === Infinity ? CHECKPOINT_DISTANCE : { bytesMin, ratio: 1 },
      clock: services.get(CLOCK),
      files: SYSTEM_FILES,
      onError: (cause) => void this.fail(active, cause),
    });
    active.output = output;
    return output;
  }

  private fail(active: Active, cause: Error): YardmasterError {
    const { path: file } = active;
    const message = `the recording ${file} cannot be written any more: ${cause.message}`;
    const err = new YardmasterError('ERR_LOG', message, { file }, { cause });
    this.log.error({ err }, `${message}; the scheduler continues without recording`);
    if (this.active === active) {
      this.active = undefined;
      this.kernel().stopRecording();
    }
    return err;
  }

  /** @returns why the end could not be written, which the log says, too */
  private async finish(active: Active): Promise<YardmasterError | undefined> {
    const { output, file } = active;
    if (output === undefined) {
      file?.close();
      return undefined;
    }
    const kernel = this.kernel();
    const check = kernel.checkNow(true);
    kernel.stopRecording();
    return output.close(check).then(
      () => undefined,
      (cause: unknown) => this.fail(active, cause as Error),
    );
  }

  private kernel(): RecordingKernel {
    const kernel = this.services?.get(SchedulerKernel);
    if (kernel instanceof RecordingKernel) return kernel;
    throw new YardmasterError(
      'ERR_LOG',
      'the scheduler has a kernel of its own, which cannot be recorded',
    );
  }
}

/** Makes the file or folder of a recording; it must not exist yet. @throws YardmasterError `ERR_LOG` */
function made(path: string, keep?: Retention): Active {
  let file: SegmentFile | undefined;
  try {
    if (keep === undefined) file = SegmentFile.create(path, SYSTEM_FILES);
    else mkdirSync(path, { mode: 0o700 });
  } catch (cause) {
    const { message, code } = cause as NodeJS.ErrnoException;
    const remedies = new Map([
      ['EEXIST', '; choose another name, or remove what is there'],
      ['ENOENT', '; make its folder first'],
    ]);
    const text = `the log ${path} cannot be made: ${message}${remedies.get(code ?? '') ?? ''}`;
    throw new YardmasterError('ERR_LOG', text, { file: path }, { cause });
  }
  const startedAtMs = Date.now();
  return { path, startedAtMs, file, keep, output: undefined, abandon: undefined };
}

/** One more recording beside that of the first start: `run-2.ylog`. */
export function numbered(path: string, number: number): string {
  const { dir, name, ext } = parse(path);
  return join(dir, `${name}-${number}${ext}`);
}

function infoOf({ path, startedAtMs, output }: Active): RecordingInfo {
  return { file: path, startedAtMs, bytes: output?.nbytes ?? 0 };
}

/** Closes the file of a recording, and deletes it or its folder, if it can. */
function discard({ path, file, output }: Active): void {
  output?.abandon();
  file?.close();
  try {
    if (!removePrivateFolder(path)) rmSync(path, { force: true });
  } catch {
    // It stays.
  }
}

function closed(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler was closed before the recording began');
}

/** Of a recording without a name. */
function timeName(): string {
  return new Date().toISOString().replaceAll(':', '-');
}

/** Less would be nothing but checkpoints. */
const BYTES_MIN = 2 ** 20;
const AGE_MIN_MS = 1000;

/**
 * Reads `2GB`, `24h`, or both: `2GB,24h`.
 * @throws YardmasterError `ERR_CONFIG`
 */
export function recordingKeepOf(text: string): Retention {
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
