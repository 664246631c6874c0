import { YardmasterError } from '../api/errors.ts';
import type { RecordingInfo } from '../api/insight.ts';
import { token, type Token } from '../api/plugin.ts';
import type { Stimulus } from '../messages/stimulus.ts';

export const JOURNAL: Token<SchedulerJournal> = token('journal');

/** The journal from which a scheduler starts again after its process has ended. */
export interface SchedulerJournal {
  /** True when there is one: workers then keep their runs while the scheduler is away. */
  readonly isOn: boolean;
  /** Resolves when what it holds has been read: peers register only then. undefined: they need not wait. */
  readonly reading: Promise<void> | undefined;
  /** Called before the kernel handles a stimulus. Writes it down, if that is necessary. */
  before(stimulus: Stimulus): void;
  /** Called when the kernel has failed at a stimulus and recovered, in the place of what it would have led to. */
  failed(stimulus: Stimulus): void;
  /** Called after the kernel has handled a stimulus, and before anything of it is sent. */
  after(): void;
  /** True when a worker of that address was known before, and is not back yet. */
  isAwaited(address: string): boolean;
  /** True when this is the worker of that address which was known before, and is not back yet. */
  mayReturn(address: string, secret: string | undefined): boolean;
  /** Number of the last report of the client that is written; 0: none. */
  committedOf(client: string): number;
}

/** The end of the scheduler loses its state. */
export const NO_JOURNAL: SchedulerJournal = {
  isOn: false,
  reading: undefined,
  before: () => undefined,
  failed: () => undefined,
  after: () => undefined,
  isAwaited: () => false,
  mayReturn: () => false,
  committedOf: () => 0,
};

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
