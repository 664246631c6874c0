import { YardmasterError } from '../../api/errors.ts';
import { check, deepFreeze } from '../../config/check.ts';
import { type ConfigOrigin, configError, IN_CODE, type Segment } from '../../config/errors.ts';

/** Where an extension was named, for messages. */
export interface Place {
  readonly origin: ConfigOrigin;
  /** Path of its options. */
  readonly optionsAt: readonly Segment[];
}

/** Named by a call at run time and not by a configuration. */
export const AT_RUN_TIME: Place = { origin: IN_CODE, optionsAt: ['options'] };

/**
 * Options with defaults filled in and units turned into numbers. Without a schema the constructor of a class
 * gets them as they are, and a definition takes none.
 * @param source - whose options they are: `counter from ./plugins/counter.js`
 * @throws YardmasterError `ERR_CONFIG` with all problems; `ERR_PLUGIN_LOAD` for a bad schema
 */
export function checkOptions(
  schema: object | undefined,
  options: Readonly<Record<string, unknown>> | undefined,
  { origin, optionsAt }: Place,
  source: string,
  owner: 'class' | 'definition' = 'definition',
): Readonly<Record<string, unknown>> {
  if (schema === undefined) {
    if (owner === 'class') return options ?? {};
    return noOptions(options, { origin, optionsAt }, source);
  }
  let checked;
  try {
    checked = check(schema, options ?? {}, optionsAt);
  } catch (cause) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the optionsSchema of ${source} is not valid: ${(cause as Error).message}`,
      { source },
      { cause },
    );
  }
  if (checked.problems.length > 0) {
    const problems = checked.problems.map((problem) => ({
      ...problem,
      message: `${problem.message} — ${source}`,
    }));
    throw configError(problems, origin);
  }
  return deepFreeze(checked.value) as Readonly<Record<string, unknown>>;
}

/** @throws YardmasterError `ERR_CONFIG` when there are options that nothing describes */
export function noOptions(
  options: Readonly<Record<string, unknown>> | undefined,
  { origin, optionsAt }: Place,
  source: string,
): Readonly<Record<string, unknown>> {
  const problems = Object.keys(options ?? {}).map((key) => ({
    at: [...optionsAt, key],
    message: `is not a known key: ${source} declares no options (no optionsSchema)`,
    aboutKey: true,
  }));
  if (problems.length > 0) throw configError(problems, origin);
  return {};
}
