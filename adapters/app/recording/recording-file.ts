import type { Clock, RecordingInfo } from '../../../core/api/index.ts';
import { VERSION } from '../../../core/api/version.ts';
import type { Services } from '../../../core/api/token.ts';
import type { LogCheck } from '../../../core/log/format.ts';
import { KernelLogWriter } from '../../../core/log/kernel-log-writer.ts';
import type { KernelLog } from '../../../core/log/recording-kernel.ts';
import { CLOCK, CONFIG, CONFIG_FOLDER } from '../../../core/plugin-host/injection/tokens.ts';
import { SERVER_ID } from '../../../core/scheduler-host/tokens.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { AppendFile } from '../../log/append-file.ts';

/** What is gathered is written after this time at the latest. */
const FLUSH_MS = 1000;

/** The file of one recording. */
export class RecordingFile {
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

  /** Writes the header. */
  begin(services: Services): KernelLog {
    const clock = services.get(CLOCK);
    this.startedAtMs = Date.now();
    const header = {
      version: VERSION,
      schedulerId: services.get(SERVER_ID),
      createdAtMs: this.startedAtMs,
      config: plainPart(services.get(CONFIG)) as Readonly<Record<string, unknown>>,
      folder: services.get(CONFIG_FOLDER),
    };
    const sink = (bytes: Uint8Array): void => this.file.append(bytes);
    const log = new KernelLogWriter(new MsgpackCodec(), sink, header, clock.nowMs());
    this.clock = clock;
    this.log = log;
    this.timer = setInterval(() => log.flush(), FLUSH_MS).unref();
    return log;
  }

  /** Hands what was gathered to the file. */
  flush(): void {
    this.log?.flush();
  }

  /** Writes the last frame. */
  end(check: LogCheck): void {
    this.log?.end(check, this.clock?.nowMs() ?? 0);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.file.close();
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
