import { YardmasterError } from '../../../core/api/index.ts';
import { parseBytes, parseDurationMs } from '../../../core/util/units.ts';

/** How much of a recording is kept. */
export interface RecordingKeep {
  /** All segments together; Infinity: any number. */
  readonly bytes: number;
  /** What is older is dropped. */
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
