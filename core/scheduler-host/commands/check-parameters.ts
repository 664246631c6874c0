import type { ParametersSchema } from '../../api/command-parameters.ts';
import { YardmasterError } from '../../api/errors.ts';
import { problemsOf } from '../../config/check.ts';
import { pathText } from '../../config/errors.ts';
import { hint, show } from '../../shared/words.ts';
import { isPlainObject } from '../../util/plain-object.ts';

/**
 * The parameters of a call, checked: without those that are null or undefined, and with defaults.
 * @throws YardmasterError `ERR_PROTOCOL` naming the command and the parameter
 */
export function checkParameters(
  command: string,
  schema: ParametersSchema,
  parameters: unknown,
): Readonly<Record<string, unknown>> {
  const given = parameters ?? {};
  if (!isPlainObject(given)) {
    throw refusal(command, `takes its parameters as an object, got ${show(given)}`);
  }
  const present = Object.entries(given).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  const checked = Object.fromEntries(present);
  const problems = problemsOf(schema, checked);
  // A misspelt name is named before the parameter that is missing because of it.
  const problem = problems.find(({ aboutKey }) => aboutKey === true) ?? problems[0];
  if (problem === undefined) return checked;
  const { at, message, aboutKey } = problem;
  const field = String(at[0]);
  const known = Object.keys(schema.properties);
  const there = known.length === 0 ? 'it has none' : `there are ${known.join(', ')}`;
  throw aboutKey === true
    ? refusal(command, `has no parameter "${field}"${hint(field, known)}; ${there}`, field)
    : refusal(command, `refuses its parameters: ${pathText(at)} ${message}`, field);
}

function refusal(command: string, what: string, field?: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "${command}" ${what}`, {
    command,
    ...(field === undefined ? {} : { field }),
  });
}
