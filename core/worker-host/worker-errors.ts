/** The errors with which a worker closes without a request. */
import { YardmasterError } from '../api/errors.ts';

/** The connection has ended. */
export function schedulerGone(scheduler: string, cause: Error | undefined): YardmasterError {
  const why = cause === undefined ? '' : `: ${cause.message}`;
  const message = `the scheduler ${scheduler} closed the connection${why}`;
  return new YardmasterError(
    'ERR_CLOSED',
    message,
    { scheduler },
    cause === undefined ? {} : { cause },
  );
}

/** It did not come back. */
export function notBack(gone: YardmasterError, cause: unknown): YardmasterError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new YardmasterError('ERR_CLOSED', `${gone.message}, and ${why}`, gone.data, { cause });
}

/** Its machine found itself inconsistent. */
export function broken(address: string, cause: unknown): YardmasterError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new YardmasterError(
    'ERR_INVARIANT',
    `the worker ${address} closes: ${reason}`,
    YardmasterError.is(cause) ? cause.data : {},
    { cause },
  );
}
