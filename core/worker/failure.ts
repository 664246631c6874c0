import type { ErrorPayload } from '../messages/payload.ts';
import type { TaskFailure } from '../state/task.ts';

/** Characters of the texts for people. */
const TEXT_LENGTH_MAX = 10_000;

/** A failure as workers report it. */
export function toTaskFailure(error: ErrorPayload): TaskFailure {
  const text = error.code === undefined ? error.name : `${error.name} [${error.code}]`;
  return {
    exception: error,
    traceback: error.stack,
    exceptionText: `${text}: ${error.message}`.slice(0, TEXT_LENGTH_MAX),
    tracebackText: (error.stack ?? '').slice(0, TEXT_LENGTH_MAX),
  };
}

/** A failure that the worker itself finds. */
export function localFailure(code: string, message: string): TaskFailure {
  return toTaskFailure({ name: 'YardmasterError', code, message });
}
