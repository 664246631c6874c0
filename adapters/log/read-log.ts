import { createReadStream } from 'node:fs';
import { YardmasterError } from '../../core/api/index.ts';

const CHUNK_BYTES = 2 ** 20;

/**
 * The bytes of a log, in pieces.
 * @param start - the first byte
 * @throws YardmasterError `ERR_LOG` when the file cannot be read
 */
export async function* readBytes(
  file: string,
  start = 0,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const stream = createReadStream(file, { highWaterMark: CHUNK_BYTES, start });
    for await (const bytes of stream) yield bytes as Uint8Array;
  } catch (cause) {
    throw new YardmasterError(
      'ERR_LOG',
      `the log ${file} cannot be read: ${(cause as Error).message}`,
      { file },
      { cause },
    );
  }
}
