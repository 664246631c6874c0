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
 * Options with defaults filled in and units turned into numbers. Without a schema they pass as they
 * are.
 * @param source - whose options they are: `counter from ./plugins/counter.js`
 * @throws YardmasterError `ERR_CONFIG` with all problems; `ERR_PLUGIN_LOAD` for a bad schema
 */
export function checkOptions(
  schema: object | undefined,
  options: Readonly<Record<string, unknown>> | undefined,
  { origin, optionsAt }: Place,
  source: string,
): Readonly<Record<string, unknown>> {
  if (schema === undefined) return options ?? {};
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
