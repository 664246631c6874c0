import { YardmasterError } from '../../core/api/index.ts';

/** Why something could not be done; `data.reason` of the error. */
type Reason =
  'busy' | 'deleted' | 'exists' | 'full' | 'mismatch' | 'not-a-client' | 'not-held' | 'unknown';

/** The error of a call that is in order but cannot be granted. */
export function refused(
  reason: Reason,
  message: string,
  data: Readonly<Record<string, unknown>>,
): YardmasterError {
  return new YardmasterError('ERR_COORDINATION', message, { ...data, reason });
}
