import { YardmasterError } from '../../api/errors.ts';

/** What the names may occupy that the scheduler remembers for one client, of each kind. */
export const NAMES_BYTES_MAX = 64 * 1024 * 1024;

/** @param what - for people: `of what the client has scattered` */
export function tooManyNames(client: string, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_QUOTA',
    `the names ${what} by the client ${client} occupy more than ${NAMES_BYTES_MAX} bytes; release what is not needed, or use fewer or shorter names`,
    { client, limitBytes: NAMES_BYTES_MAX },
  );
}
