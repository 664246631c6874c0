import { messageOf, YardmasterError } from '../api/errors.ts';
import {
  configError,
  type ConfigOrigin,
  frozenCopy,
  IN_CODE,
  problemLine,
} from '../config/problems.ts';
import { check, mistakeIn, type Problem, type Segment } from '../shared/schema.ts';

/** The place at which an extension was named, for messages. */
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
  const mistake = mistakeIn(schema);
  if (mistake !== undefined) {
    const message = `the optionsSchema of ${source} is not valid: ${mistake}`;
    throw new YardmasterError('ERR_PLUGIN_LOAD', message, { source });
  }
  const { value, problems } = check(schema, options ?? {}, optionsAt);
  if (problems.length > 0) {
    const named = problems.map((one) => ({ ...one, message: `${one.message} — ${source}` }));
    throw configError(named, origin);
  }
  return frozenCopy(value) as Readonly<Record<string, unknown>>;
}

/** @throws YardmasterError `ERR_CONFIG` when there are options that nothing describes */
export function noOptions(
  options: Readonly<Record<string, unknown>> | undefined,
  { origin, optionsAt }: Place,
  source: string,
): Readonly<Record<string, unknown>> {
  const problems = Object.keys(options ?? {}).map((key) => ({
    at: [...optionsAt, key],
    message: `is not known: ${source} declares no options: leave it out, or describe it in an optionsSchema`,
    aboutKey: true,
  }));
  if (problems.length > 0) throw configError(problems, origin);
  return {};
}

/** Collects what is wrong with a configuration, so that all of it is reported at once. */
export class ProblemList {
  private readonly errors: unknown[] = [];

  constructor(private readonly origin: ConfigOrigin) {}

  get isEmpty(): boolean {
    return this.errors.length === 0;
  }

  /**
   * Runs one step. What it throws is kept, with the place in the configuration.
   * @param at - the entry that the step is about; undefined when the error says so itself
   * @returns undefined when it threw
   */
  async attempt<T>(
    at: readonly Segment[] | undefined,
    run: () => T | Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      this.errors.push(at === undefined ? error : placed(error, at, this.origin));
      return undefined;
    }
  }

  /**
   * @throws the error when there is one; `ERR_CONFIG` with the lines of all when there are several
   */
  throwIfAny(): void {
    const { errors } = this;
    if (errors.length === 0) return;
    if (errors.length === 1) throw errors[0];
    const lines = errors.flatMap(linesOf);
    const cause = errors.find((error) => !YardmasterError.is(error, 'ERR_CONFIG'));
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration has ${lines.length} problems:\n${lines.join('\n')}`,
      { problems: lines.map((line) => ({ line: line.trim() })) },
      cause === undefined ? {} : { cause },
    );
  }
}

/** Says where in the configuration something was named that could not be loaded. */
function placed(error: unknown, at: readonly Segment[], origin: ConfigOrigin): unknown {
  if (!YardmasterError.is(error) || error.code === 'ERR_CONFIG') return error;
  if (typeof error.data['at'] === 'string') return error; // An inner step has said it more exactly.
  const problem: Problem = { at: [...at, 'use'], message: '' };
  const where = problemLine(problem, origin).trimEnd();
  const data = { ...error.data, at: where };
  return new YardmasterError(error.code, `${where}: ${error.message}`, data, { cause: error });
}

/** An `ERR_CONFIG` has a headline and indented lines. */
function linesOf(error: unknown): readonly string[] {
  const message = messageOf(error);
  const isList = YardmasterError.is(error, 'ERR_CONFIG') && message.includes('\n  ');
  return isList ? message.split('\n').slice(1) : [`  ${message}`];
}

/** Names of the extensions of one kind that a configuration lists: each may come once. */
export class UniqueNames {
  private readonly places = new Map<string, string>();

  /** @param what - the kind in the plural, for messages: `worker plugins` */
  constructor(
    private readonly what: string,
    private readonly origin: ConfigOrigin,
  ) {}

  /**
   * @param source - where the extension was loaded from
   * @param at - the entry that names it
   * @param key - what may come only once; default: the name
   * @throws YardmasterError `ERR_PLUGIN_LOAD` with the places of both when the name was added before
   */
  add(name: string, source: string, at: readonly Segment[], key = name): void {
    const use = { at: [...at, 'use'], message: '' };
    const place = `${source} at ${problemLine(use, this.origin).trimEnd()}`;
    const other = this.places.get(key);
    if (other === undefined) {
      this.places.set(key, place);
      return;
    }
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `there are two ${this.what} "${name}", from ${other} and from ${place}; remove one, or give it another name`,
      { name, places: [other, place] },
    );
  }
}
