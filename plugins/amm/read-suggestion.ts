import { type Suggestion, YardmasterError } from '../../core/api/index.ts';

/** What may be a suggestion, or anything. */
type Unchecked =
  { readonly op?: unknown; readonly task?: { readonly state?: unknown } | null } | null | undefined;

/**
 * What a policy yielded, if it is a suggestion. In plain JavaScript the parts may also be written as
 * an array, as in Dask: `yield ['drop', task, [worker]]`.
 *
 * @throws YardmasterError `ERR_POLICY` saying what it is instead
 */
export function readSuggestion(step: { readonly value?: unknown }): Suggestion {
  const { value } = step;
  const suggestion = (Array.isArray(value) ? fromParts(value) : value) as Unchecked;
  const op = suggestion?.op;
  const state = suggestion?.task?.state;
  if ((op === 'replicate' || op === 'drop') && typeof state === 'string') {
    return suggestion as Suggestion;
  }
  throw new YardmasterError('ERR_POLICY', complaint(step), { op });
}

function fromParts([op, task, candidates]: readonly unknown[]): Suggestion {
  return { op, task, candidates: candidates ?? undefined } as Suggestion;
}

function complaint(step: unknown): string {
  if (step instanceof Promise) {
    return 'its run is asynchronous; a round is one step of the scheduler, so write *run() without async';
  }
  const { value } = step as { readonly value?: unknown };
  const advice = 'yield replicate(task) or drop(task)';
  if (typeof value !== 'object' || value === null) {
    return `${String(value)} is not a suggestion; ${advice}`;
  }
  const { op } = (Array.isArray(value) ? fromParts(value) : value) as { readonly op?: unknown };
  return op === 'replicate' || op === 'drop'
    ? `its suggestion "${op}" is about no task; look it up with cluster.tasks.get(key), which may be undefined`
    : `"${String(op)}" is not a suggestion; ${advice}`;
}
