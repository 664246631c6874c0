import { copyFileSync, constants, truncateSync } from 'node:fs';
import { YardmasterError } from '../../../core/api/index.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import { readBytes } from '../../log/read-log.ts';
import { journalCodec } from './journal-options.ts';

/** What was done to a file. */
export interface Repair {
  /** Bytes that were kept; undefined: nothing was wrong. */
  readonly keptBytes: number | undefined;
  /** The file as it was. */
  readonly copy: string | undefined;
}

/**
 * Cuts a log before its first frame that cannot be read. The file as it was is kept beside it.
 * @throws YardmasterError `ERR_LOG` when it is no log, when there is such a copy already, or when nothing useful would be
 *   left: the first part of a journal's segment is damaged
 */
export async function repairLog(file: string): Promise<Repair> {
  const offset = await damageOf(file);
  if (offset === undefined) return { keptBytes: undefined, copy: undefined };
  const copy = `${file}.damaged`;
  try {
    copyFileSync(file, copy, constants.COPYFILE_EXCL);
    truncateSync(file, offset);
  } catch (cause) {
    const message = `the log ${file} cannot be repaired: ${(cause as Error).message}`;
    throw new YardmasterError('ERR_LOG', message, { file }, { cause });
  }
  return { keptBytes: offset, copy };
}

/** Where the first frame is that cannot be read. */
async function damageOf(file: string): Promise<number | undefined> {
  const reader = new LogReader(journalCodec(), file);
  // Without its header nothing can be read, and a segment of a journal says first all that was known when it began.
  let isFirstPart = true;
  try {
    for await (const bytes of readBytes(file)) {
      for (const frame of reader.read(bytes)) {
        if (frame.kind === 'header') isFirstPart = frame.payload.segment !== undefined;
        else if (frame.kind === 'checkpoint') isFirstPart = false;
      }
    }
    reader.end();
    return undefined;
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    const { offset, damage } = error.data as { readonly offset?: number; readonly damage?: string };
    if (offset === undefined || damage === 'foreign') throw error;
    if (!isFirstPart) return offset;
    throw new YardmasterError(
      'ERR_LOG',
      `${error.message}; what is before that place cannot be used by itself: restore the file from a copy`,
      { file, offset, damage },
      { cause: error },
    );
  }
}
