import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Logger, type RecordingInfo, YardmasterError } from '../../../core/api/index.ts';
import { byFactory, type Provider, type Services } from '../../../core/api/token.ts';
import { RecordingKernel } from '../../../core/log/recording-kernel.ts';
import { CLOCK, CONFIG } from '../../../core/plugin-host/injection/tokens.ts';
import { kernelOptions } from '../../../core/scheduler-host/kernel-options.ts';
import { PORTS } from '../../../core/scheduler-host/kernel-ports.ts';
import {
  noFolder,
  notRecording,
  RECORDER,
  type SchedulerRecorder,
} from '../../../core/scheduler-host/recorder.ts';
import { KERNEL } from '../../../core/scheduler-host/tokens.ts';
import { removePrivateFolder } from '../../log/private-folder.ts';
import { RecordingFile } from './recording-file.ts';
import type { RecordingKeep } from './recording-keep.ts';
import { RecordingSegments } from './recording-segments.ts';
import type { RecordingTarget } from './recording-target.ts';

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
    const kernel = byFactory(KERNEL, (services) => {
      const config = services.get(CONFIG);
      const nowMs = services.get(CLOCK).nowMs();
      const ports = services.get(PORTS).compile();
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
    const kernel = this.services?.get(KERNEL);
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
    const kernel = this.services?.get(KERNEL);
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
      const kernel = this.services?.get(KERNEL);
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
