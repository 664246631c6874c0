import { YardmasterError } from '../api/errors.ts';

/**
 * The error with which a scheduler closes because its state cannot be trusted any more.
 * @param what - the subject and verb of the failure: `the policies could not be replaced`
 * @returns `ERR_PLUGIN_HOOK` when a hook of a plugin caused it, else `ERR_INVARIANT`
 */
export function crashError(what: string, cause: unknown): YardmasterError {
  const message = cause instanceof Error ? cause.message : String(cause);
  const code = YardmasterError.is(cause, 'ERR_PLUGIN_HOOK') ? cause.code : 'ERR_INVARIANT';
  return new YardmasterError(code, `the scheduler closes: ${what}: ${message}`, {}, { cause });
}
