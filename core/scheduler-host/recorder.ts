import { YardmasterError } from '../api/errors.ts';
import type { RecordingInfo } from '../api/insight.ts';
import { token, type Token } from '../api/plugin.ts';

export const RECORDER: Token<SchedulerRecorder> = token('recorder');

/** Records what the kernel is handed, on request. One recording at a time. */
export interface SchedulerRecorder {
  /** Undefined: nothing is being recorded. */
  readonly current: RecordingInfo | undefined;
  /**
   * Begins a recording in the folder that the operator permits. Resolves when it has begun: at once, or when the
   * graph that is being submitted is complete.
   * @param name - of the file, without a folder; default: of the time
   * @throws YardmasterError `ERR_CONFIG` when there is no such folder, `ERR_PROTOCOL` for a name that is a path,
   *   `ERR_LOG` when there is a recording already, or when it cannot be written
   */
  start(name: string | undefined): Promise<RecordingInfo>;
  /** @throws YardmasterError `ERR_LOG` when nothing is being recorded */
  stop(): Promise<RecordingInfo>;
}

/** Without an operator's folder nothing is recorded on request. */
export const NO_RECORDER: SchedulerRecorder = {
  current: undefined,
  start: () => Promise.reject(noFolder()),
  stop: () => Promise.reject(notRecording()),
};

/** No folder was named for recordings on request. */
export function noFolder(): YardmasterError {
  return new YardmasterError(
    'ERR_CONFIG',
    'this scheduler was started without a folder for recordings; its operator names one: --recordings FOLDER',
  );
}

/** There is nothing to stop. */
export function notRecording(): YardmasterError {
  return new YardmasterError('ERR_LOG', 'the scheduler is not being recorded');
}
