import type { RecordingInfo } from '../../../core/api/index.ts';
import { VERSION } from '../../../core/api/version.ts';
import type { Services } from '../../../core/api/token.ts';
import type { LogCheck, LogHeader } from '../../../core/log/format.ts';
import type { KernelLog } from '../../../core/log/recording-kernel.ts';
import { CONFIG, CONFIG_FOLDER } from '../../../core/plugin-host/injection/tokens.ts';
import { SERVER_ID } from '../../../core/scheduler-host/tokens.ts';

/** Where a recording is written. */
export interface RecordingTarget {
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

/** What is gathered is written after this time at the latest. */
export const FLUSH_MS = 1000;

/** The header of a recording that begins now. */
export function headerOf(services: Services, createdAtMs: number): LogHeader {
  return {
    version: VERSION,
    schedulerId: services.get(SERVER_ID),
    createdAtMs,
    config: plainPart(services.get(CONFIG)) as Readonly<Record<string, unknown>>,
    folder: services.get(CONFIG_FOLDER),
  };
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
