import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { YardmasterError } from '../../../core/api/index.ts';
import { numbersIn } from '../../log/numbered-files.ts';

const SEGMENT = /^part-(\d{6,})\.ylog$/;

/** Path of a file of a recording of which only the latest part is kept. */
export function segmentFile(folder: string, number: number): string {
  return join(folder, `part-${String(number).padStart(6, '0')}.ylog`);
}

/**
 * The files of a recording, the oldest first: itself, or those of its folder.
 * @throws YardmasterError `ERR_LOG` when one of them is missing
 */
export function recordingFiles(path: string): readonly string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  const numbers = numbersIn(readdirSync(path), SEGMENT);
  const [first] = numbers;
  if (first === undefined) {
    throw new YardmasterError(
      'ERR_LOG',
      `the folder ${path} holds no recording: give a recording, or the folder of one that was made with --record-keep`,
      { folder: path },
    );
  }
  for (const [index, number] of numbers.entries()) {
    if (number === first + index) continue;
    const missing = segmentFile(path, first + index);
    throw new YardmasterError(
      'ERR_LOG',
      `the recording ${path} lacks ${missing}; each of its files can be read by itself`,
      { folder: path, file: missing },
    );
  }
  return numbers.map((number) => segmentFile(path, number));
}

/** Whether this is the folder of a recording, and not of a journal. */
export function isRecordingFolder(path: string): boolean {
  return readdirSync(path).some((name) => SEGMENT.test(name));
}
