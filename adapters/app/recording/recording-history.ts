import type { LogHeader } from '../../../core/log/format.ts';
import type { ReplayDifference } from '../../../core/log/replay.ts';
import type { YardmasterError } from '../../../core/api/index.ts';
import { type History, RunCollector } from '../../report/index.ts';
import { type ReplayOptions, replayRecording } from './replay-recording.ts';

/** What a recording says about the work that was done. */
export interface RecordedHistory {
  readonly header: LogHeader;
  readonly history: History;
  /** From here on the replay decided otherwise, so that what it shows is not what happened. */
  readonly difference: ReplayDifference | undefined;
  /** What is wrong with the file after the last frame that was read: `ERR_LOG`. */
  readonly damage: YardmasterError | undefined;
}

/** Looks at the memory of workers are at least so far apart. */
const SAMPLE_MS = 100;

/**
 * Replays a recording, and collects its runs.
 * @throws YardmasterError as `replayRecording`
 */
export async function recordingHistory(
  file: string,
  options: Pick<ReplayOptions, 'policies' | 'allowPolicies'> = {},
): Promise<RecordedHistory> {
  let nowMs = 0;
  let sampledMs = -Infinity;
  const collector = new RunCollector(() => nowMs);
  const { header, kernel, difference, damage } = await replayRecording(file, {
    ...options,
    hooks: collector.hooks,
    beforeFrame: ({ timeMs }) => {
      nowMs = timeMs;
    },
    onFrame: ({ timeMs }, { cluster }) => {
      if (timeMs - sampledMs < SAMPLE_MS) return;
      sampledMs = timeMs;
      collector.sample(cluster);
    },
  });
  return { header, history: collector.finish(kernel.cluster), difference, damage };
}
