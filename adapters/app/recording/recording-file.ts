import type { Clock, RecordingInfo } from '../../../core/api/index.ts';
import type { Services } from '../../../core/api/token.ts';
import type { LogCheck } from '../../../core/log/format.ts';
import { KernelLogWriter } from '../../../core/log/kernel-log-writer.ts';
import type { KernelLog } from '../../../core/log/recording-kernel.ts';
import { CLOCK } from '../../../core/plugin-host/injection/tokens.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { AppendFile } from '../../log/append-file.ts';
import { FLUSH_MS, headerOf, type RecordingTarget } from './recording-target.ts';

/** A recording in one file. */
export class RecordingFile implements RecordingTarget {
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
