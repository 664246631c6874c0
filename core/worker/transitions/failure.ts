import type { ErrorPayload } from '../../messages/payload.ts';
import type { TaskFailure } from '../../state/task.ts';

/** Characters of the texts for people. */
const TEXT_LENGTH_MAX = 10_000;
/** A failure as workers report it. */
export function toTaskFailure(error: ErrorPayload): TaskFailure {
  const text = error.code === undefined ? error.name : `${error.name} [${error.code}]`;
  return {
    exception: error,
    traceback: error.stack,
    exceptionText: clipped(`${text}: ${error.message}`),
    tracebackText: clipped(error.stack ?? ''),
  };
}

/** A failure that the worker itself finds. */
export function localFailure(code: string, message: string): TaskFailure {
  return toTaskFailure({ name: 'YardmasterError', code, message });
}

function clipped(text: string): string {
  if (text.length <= TEXT_LENGTH_MAX) return text;
  // The cut may leave half of a surrogate pair, which has no form in UTF-8.
  return text.slice(0, TEXT_LENGTH_MAX).replace(/[\uD800-\uDBFF]$/, '');
}
