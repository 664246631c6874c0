import { YardmasterError } from '../api/errors.ts';
import { isPlainObject } from '../util/values.ts';
import { hint, show } from './words.ts';

/** The rule of an option of a call. */
export interface OptionRule {
  /** Stands after "must be" in the message. */
  readonly wanted: string;
  fits(value: unknown): boolean;
}

/** A rule for each option. A new option of the type has to be listed to compile. */
export type OptionRules<Options> = Readonly<Record<keyof Options, OptionRule>>;

export const ANY: OptionRule = { wanted: 'anything', fits: () => true };
export const FLAG: OptionRule = { wanted: 'true or false', fits: (v) => typeof v === 'boolean' };
export const TEXT: OptionRule = {
  wanted: 'text, not empty',
  fits: (v) => typeof v === 'string' && v !== '',
};
export const LIST: OptionRule = { wanted: 'a list', fits: (v) => Array.isArray(v) };
export const FIELDS: OptionRule = { wanted: 'an object', fits: isPlainObject };
export const FUNCTION: OptionRule = { wanted: 'a function', fits: (v) => typeof v === 'function' };
export const BYTES: OptionRule = {
  wanted: 'a number of bytes, at least 0, where 0 means unlimited',
  fits: (v) => Number.isFinite(v) && (v as number) >= 0,
};
/** Milliseconds. */
export const DURATION: OptionRule = {
  wanted: 'a number of milliseconds, at least 0, or Infinity',
  fits: (v) => typeof v === 'number' && v >= 0,
};
export const AMOUNTS: OptionRule = {
  wanted: 'an object with an amount, at least 0, for each name, such as { GPU: 1 }',
  fits: (v) => isPlainObject(v) && Object.values(v).every(isAmount),
};

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}

export function wholeNumber(least: number): OptionRule {
  return {
    wanted: `a whole number, at least ${least}`,
    fits: (v) => Number.isSafeInteger(v) && (v as number) >= least,
  };
}

export function oneOf(...values: readonly string[]): OptionRule {
  return { wanted: values.join(' or '), fits: (v) => values.includes(v as string) };
}

/** An object with these methods, of whatever class. */
export function objectWith(...methods: readonly string[]): OptionRule {
  return {
    wanted: `an object with ${methods.join(' and ')}`,
    fits: (v) =>
      typeof v === 'object' &&
      v !== null &&
      methods.every((name) => typeof (v as Record<string, unknown>)[name] === 'function'),
  };
}

export function either(...rules: readonly OptionRule[]): OptionRule {
  return {
    wanted: rules.map(({ wanted }) => wanted).join(', or '),
    fits: (v) => rules.some((rule) => rule.fits(v)),
  };
}

export const CLOCK = objectWith('nowMs', 'setTimer');
export const LOG = objectWith('info', 'warn', 'error');
export const TRANSPORT = objectWith('listen', 'connect');

/**
 * Checks the options of a call in code, as those of a configuration are. An option that is undefined counts
 * as not given.
 *
 * @param call - as it is written: `LocalCluster.start`
 * @throws YardmasterError `ERR_CONFIG` with every problem
 */
export function checkCallOptions<Options>(
  call: string,
  options: Options,
  rules: OptionRules<Options>,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `${call} takes an object with options, got ${show(options)}`,
      { call },
    );
  }
  const known = Object.keys(rules);
  const problems = Object.entries(options).flatMap(([option, value]) => {
    const rule = Object.hasOwn(rules, option) ? rules[option as keyof Options] : undefined;
    if (rule === undefined) {
      return [
        `there is no option "${option}"${meant(option, known)}; there are ${known.join(', ')}`,
      ];
    }
    if (value === undefined || rule.fits(value)) return [];
    return [`the option ${option} must be ${rule.wanted}, got ${show(value)}`];
  });
  if (problems.length === 0) return;
  throw new YardmasterError('ERR_CONFIG', `${call}: ${problems.join('; ')}`, { call, problems });
}

/** Also of an option whose unit or end was left out: `memoryLimit`. */
function meant(option: string, known: readonly string[]): string {
  const near = hint(option, known);
  const longer = known.find((name) => option.length > 2 && name.startsWith(option));
  return near === '' && longer !== undefined ? `; did you mean "${longer}"?` : near;
}

/** The places of modules that a worker loads because a client names them. */
export interface ModuleLimit {
  /** Real paths of the folders and files. */
  readonly folders: readonly string[];
  /** The project in which modules are looked for that clients name relative to theirs. Real path. */
  readonly codeRoot: string;
  /**
   * @param module - a URL, or an absolute path
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  check(module: string): void;
  /**
   * Refuses to call what a module exports without having registered it as a task, where the module belongs to a package that
   * is not permitted by itself: such functions may do whatever their caller wants, such as to import a path.
   * @param module - a URL, or an absolute path, that {@link check} permits
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  checkExports(module: string): void;
}

/** The largest event that a client, worker or task logs: all topics are kept in the memory of the scheduler. */
export const EVENT_BYTES_MAX = 1024 * 1024;
