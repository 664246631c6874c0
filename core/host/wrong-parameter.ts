import { YardmasterError } from '../api/errors.ts';

/** A parameter of a command that is not of its form: `ERR_PROTOCOL`, with the command and the field. */
export function wrongParameter(command: string, field: string, what: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "${command}" wants ${what} as ${field}`, {
    command,
    field,
  });
}
