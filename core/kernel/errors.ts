import { YardmasterError } from '../api/errors.ts';
import type { TaskFailure } from '../state/task.ts';
import type { ErrorPayload } from '../messages/payload.ts';
import type { ErrorCode } from '../api/errors.ts';
import type { TransitionRecord } from './insight/story.ts';

/** The state of the scheduler is inconsistent. Always a bug; carries what led to it. */
export function invariantError(
  message: string,
  data: Readonly<Record<string, unknown>>,
  story: readonly TransitionRecord[] = [],
  code: 'ERR_INVARIANT' | 'ERR_TRANSITION' = 'ERR_INVARIANT',
): YardmasterError {
  const steps = story.slice(-20).map(({ key, start, finish, stimulusId }) => {
    return `  ${key}: ${start} -> ${finish} (${stimulusId})`;
  });
  const text = steps.length === 0 ? message : `${message}\nstory:\n${steps.join('\n')}`;
  return new YardmasterError(code, text, { ...data, story });
}

/** A failure that the scheduler itself declares, in the form in which workers report theirs. */
export function schedulerFailure(
  code: ErrorCode,
  message: string,
  data: Readonly<Record<string, unknown>>,
): TaskFailure {
  const exception: ErrorPayload = { name: 'YardmasterError', message, code, data };
  return { exception, traceback: undefined, exceptionText: message, tracebackText: '' };
}
