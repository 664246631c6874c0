import { toErrorPayload, type YardmasterError } from '../api/errors.ts';
import type { NewStimulus } from '../api/plugin.ts';

/** One run of a task on a worker. */
interface Run {
  readonly key: string;
  readonly runId: number;
}

/** The report with which a run fails that its worker cannot report itself. */
export function failureReport(
  worker: string,
  { key, runId }: Run,
  error: YardmasterError,
): NewStimulus {
  return {
    op: 'task-erred',
    worker,
    key,
    runId,
    failure: {
      exception: toErrorPayload(error),
      traceback: undefined,
      exceptionText: error.message,
      tracebackText: error.stack ?? '',
    },
  };
}
