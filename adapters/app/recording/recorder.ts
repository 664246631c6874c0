import { rm } from 'node:fs/promises';
import { KernelLogWriter } from '../../../core/log/kernel-log-writer.ts';
import { RecordingKernel } from '../../../core/log/recording-kernel.ts';
import { byFactory, type Provider, type Services } from '../../../core/api/token.ts';
import { kernelOptions } from '../../../core/scheduler-host/kernel-options.ts';
import { PORTS } from '../../../core/scheduler-host/kernel-ports.ts';
import { KERNEL, SERVER_ID } from '../../../core/scheduler-host/tokens.ts';
import { CLOCK, CONFIG, CONFIG_FOLDER } from '../../../core/plugin-host/injection/tokens.ts';
import type { Logger } from '../../../core/api/index.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { AppendFile } from '../../log/append-file.ts';
import { VERSION } from '../../../core/api/version.ts';

/** What is gathered is written after this time at the latest. */
const FLUSH_MS = 1000;

/** Records all that the kernel of one scheduler is handed. */
export class Recorder {
  /** Makes the scheduler's kernel one that is recorded. */
  readonly provider: Provider = byFactory(KERNEL, (services) => this.makeKernel(services));
  private log: KernelLogWriter | undefined;
  private kernel: RecordingKernel | undefined;
  private nowMs: () => number = () => 0;
  private timer: NodeJS.Timeout | undefined;

  private constructor(private readonly file: AppendFile) {}

  /**
   * @param file - path of the recording; it must not exist yet
   * @throws YardmasterError `ERR_LOG`
   */
  static async open(file: string, log: Logger): Promise<Recorder> {
    const onError = (error: Error): void => {
      log.error({ err: error }, `${error.message}; the scheduler continues without recording`);
    };
    return new Recorder(await AppendFile.create(file, onError));
  }

  /** Writes the end and closes the file. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    if (this.kernel !== undefined) this.log?.end(this.kernel.checkNow(true), this.nowMs());
    await this.file.close();
  }

  /** Closes and deletes the file: the scheduler did not start. Never rejects. */
  async discard(): Promise<void> {
    clearInterval(this.timer);
    await this.file.close();
    await rm(this.file.path, { force: true }).catch(() => undefined);
  }

  private makeKernel(services: Services): RecordingKernel {
    const clock = services.get(CLOCK);
    const config = services.get(CONFIG);
    const header = {
      version: VERSION,
      schedulerId: services.get(SERVER_ID),
      createdAtMs: Date.now(),
      config: plainPart(config) as Readonly<Record<string, unknown>>,
      folder: services.get(CONFIG_FOLDER),
    };
    const nowMs = clock.nowMs();
    const log = new KernelLogWriter(
      new MsgpackCodec(),
      (bytes) => this.file.append(bytes),
      header,
      nowMs,
    );
    this.log = log;
    this.nowMs = () => clock.nowMs();
    this.timer = setInterval(() => log.flush(), FLUSH_MS).unref();
    const ports = services.get(PORTS).compile();
    this.kernel = new RecordingKernel(kernelOptions(config), ports, nowMs, log);
    log.flush(); // A scheduler that is killed in its first second leaves a recording that can be read.
    return this.kernel;
  }
}

/** What of a configuration can be written down: not what was given as an object in code. */
function plainPart(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainPart).filter((item) => item !== undefined);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plainPart(part)]));
}
