import { YardmasterError } from '../../../core/api/index.ts';
import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import type { ReplayProgress } from '../../../core/log/replay.ts';
import type { SchedulerKernel } from '../../../core/kernel/scheduler-kernel.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { readBytes } from '../../log/read-log.ts';
import type { CheckpointPlace } from './checkpoint-index.ts';
import { recordingFiles } from './recording-paths.ts';
import { RecordingPlayer, type ReplayOptions } from './recording-player.ts';

export type { ReplayOptions } from './recording-player.ts';

/** The end of a replay. */
export interface ReplayResult extends ReplayProgress {
  readonly header: LogHeader;
  /** Sequence number of the last frame that was read. */
  readonly lastFrame: number;
  /** The kernel as it was at the end, to be asked why. */
  readonly kernel: SchedulerKernel;
  /** What is wrong with the file after the last frame that was replayed: `ERR_LOG`. */
  readonly damage: YardmasterError | undefined;
}

/**
 * Frames of a recording, or of a folder of one, each checked. The last thing it does is to throw when the file is damaged.
 * @param from - the header, and then what begins with this checkpoint
 * @throws YardmasterError `ERR_LOG` with file, offset and kind of damage
 */
export async function* readRecording(
  file: string,
  from?: CheckpointPlace,
): AsyncGenerator<LogFrame, void, undefined> {
  const codec = new MsgpackCodec();
  const files = recordingFiles(file);
  const first = from === undefined ? 0 : files.indexOf(from.file);
  let sequence = from?.number ?? 0;
  if (from !== undefined) yield await readHeader(from.file);
  for (const [index, part] of files.slice(first).entries()) {
    const begin = index === 0 ? from : undefined;
    const reader = new LogReader(codec, part, begin);
    for await (const bytes of readBytes(part, begin?.offset)) {
      for (const frame of reader.read(bytes)) {
        // The files of a folder count on.
        if (index > 0 && frame.kind === 'header') continue;
        yield frame.sequence === sequence ? frame : { ...frame, sequence };
        sequence++;
      }
    }
    reader.end();
  }
}

async function readHeader(file: string): Promise<LogFrame> {
  const reader = new LogReader(new MsgpackCodec(), file);
  for await (const bytes of readBytes(file)) for (const frame of reader.read(bytes)) return frame;
  reader.end();
  throw new YardmasterError('ERR_LOG', `the log ${file} ends before its first frame`, { file });
}

/**
 * Runs a recording through the kernel, and compares what it decides with what was recorded.
 * @throws YardmasterError `ERR_LOG` when not even the header can be read; `ERR_REPLAY`; `ERR_PLUGIN_LOAD` when a
 *   policy of the recording is not there
 */
export async function replayRecording(
  file: string,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const player = new RecordingPlayer(options, file);
  let damage: YardmasterError | undefined;
  let lastFrame = 0;
  try {
    for await (const frame of readRecording(file, options.from)) {
      const mayContinue = await player.play(frame);
      lastFrame = frame.sequence;
      if (!mayContinue || frame.sequence >= (options.until ?? Infinity)) break;
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || player.replay === undefined) throw error;
    damage = error;
  }
  const { header, replay } = player;
  if (header === undefined || replay === undefined) {
    throw new YardmasterError('ERR_LOG', `the log ${file} ends before its first stimulus`, {
      file,
    });
  }
  return { ...replay.progress, header, lastFrame, kernel: replay.kernel, damage };
}
