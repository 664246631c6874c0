import { messageOf, YardmasterError } from '../api/errors.ts';
import { type Logger } from '../api/plugin.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import { inBackground } from '../shared/timers.ts';
import { ClientQueues } from './client-queues.ts';
import { ErrorReports } from './error-reports.ts';
import { StimulusQueue } from './stimulus-queue.ts';
import { ON_CRASH } from './tokens.ts';

/**
 * The end of a scheduler, whatever asks for it: its owner, a plugin, the idle timeout, a crash. It happens
 * once, by the steps that `SchedulerLife` sets.
 */
@collaborator
export class Shutdown {
  /** The error with which the scheduler crashed, if it did. */
  crash: YardmasterError | undefined;
  private closing: Promise<void> | undefined;
  private steps: () => Promise<void> = () => Promise.resolve();

  constructor(
    private readonly queue: StimulusQueue,
    private readonly clientQueues: ClientQueues,
    private readonly errors: ErrorReports,
    @inject(ON_CRASH) private readonly onCrash: (error: YardmasterError) => void,
    @inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Sets what {@link close} runs. */
  runs(steps: () => Promise<void>): void {
    this.steps = steps;
  }

  /** @throws YardmasterError `ERR_CLOSED` */
  checkOpen(): void {
    if (this.closing !== undefined || this.queue.isStopped) throw closedError();
  }

  /** Resolves when everything is closed; never rejects. */
  close(): Promise<void> {
    this.closing ??= this.steps();
    return this.closing;
  }

  /** As {@link close}, for callers that do not wait. */
  closeInBackground(): void {
    inBackground(this.close(), 'the scheduler could not close in good order');
  }

  /** Handles no stimulus any more. */
  stopHandling(): void {
    this.queue.stop();
    this.clientQueues.clear();
  }

  /**
   * Reports a failure after which the state cannot be trusted, and closes.
   * @param what - the subject and verb of the failure: `the policies could not be replaced`
   */
  stopBecause(what: string, cause: unknown): void {
    if (this.queue.isStopped) return;
    const error = crashError(what, cause);
    this.stopHandling();
    this.crash = error;
    this.errors.report(error);
    try {
      this.onCrash(error);
    } catch (thrown) {
      this.log.error({ err: thrown }, 'onCrash threw');
    }
    this.closeInBackground();
  }
}

export function closedError(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler is closed');
}

/** `ERR_PLUGIN_HOOK` when a hook of a plugin caused it, `ERR_JOURNAL` when a disk did, else `ERR_INVARIANT`. */
function crashError(what: string, cause: unknown): YardmasterError {
  const message = messageOf(cause);
  const isOther =
    YardmasterError.is(cause, 'ERR_PLUGIN_HOOK') || YardmasterError.is(cause, 'ERR_JOURNAL');
  const code = isOther ? cause.code : 'ERR_INVARIANT';
  return new YardmasterError(code, `the scheduler closes: ${what}: ${message}`, {}, { cause });
}
