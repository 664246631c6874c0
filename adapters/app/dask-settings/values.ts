import { parseBytes, parseDurationMs } from '../../../core/util/units.ts';

/** Why a value cannot be used, to be read after the key: `must be true or false`. */
export class UnusableValue extends Error {}

/** Reads a value of Dask's configuration as our configuration writes it. */
export type ReadValue = (value: unknown) => unknown;

/** True or false; numbers count as in Python. */
export const flag: ReadValue = (value) => {
  if (typeof value === 'boolean') return value;
  if (value === null) return false;
  if (typeof value === 'number') return value !== 0;
  throw new UnusableValue('must be true or false');
};

/** A whole number. */
export const whole =
  (minimum: number, maximum = Number.MAX_SAFE_INTEGER): ReadValue =>
  (value) => {
    if (typeof value === 'number' && Number.isInteger(value)) {
      if (value >= minimum && value <= maximum) return value;
    }
    throw new UnusableValue(
      `must be a whole number ${maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`}`,
    );
  };

/** A number. @param minimum - smallest that is allowed */
export const number =
  (minimum: number, maximum = Infinity): ReadValue =>
  (value) => {
    if (typeof value === 'number' && value >= minimum && value <= maximum) return value;
    throw new UnusableValue(
      `must be a number ${maximum === Infinity ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`}`,
    );
  };

/** A text that is not empty. */
export const text: ReadValue = (value) => {
  if (typeof value === 'string' && value !== '') return value;
  throw new UnusableValue('must be a text');
};

/** Texts: one, or a list. */
export const texts: ReadValue = (value) => {
  const items: readonly unknown[] = Array.isArray(value) ? value : value === null ? [] : [value];
  if (items.every((item) => typeof item === 'string')) return items;
  throw new UnusableValue('must be a list of texts');
};

/** A size, such as `64 MiB`. */
export const size: ReadValue = (value) => {
  const bytes = parseBytes(value);
  if (bytes !== undefined && Number.isFinite(bytes) && bytes >= 0) return bytes;
  throw new UnusableValue('must be a size such as "64 MiB" or "100MB"');
};

/** How {@link duration} reads what is no time. */
interface DurationRules {
  /** Unit of a bare number. Default `s`. */
  readonly unit?: 'ms' | 's';
  /** Null, and 0 where Dask takes it for null, mean that there is no such limit. */
  readonly noneIsInfinite?: boolean;
}

/** A time, such as `5 minutes`; it is written in milliseconds. */
export const duration =
  ({ unit = 's', noneIsInfinite = false }: DurationRules = {}): ReadValue =>
  (value) => {
    if (noneIsInfinite && (value === null || value === 0 || value === false)) return 'inf';
    const bare = bareNumber(value);
    const ms = bare !== undefined && unit === 'ms' ? bare : parseDurationMs(value);
    if (ms !== undefined && ms >= 0) return ms === Infinity ? 'inf' : `${ms} ms`;
    throw new UnusableValue(
      `must be a time such as "5 minutes" or "100 ms"${noneIsInfinite ? ', or null for none' : ''}`,
    );
  };

function bareNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value)) return Number(value);
  return undefined;
}

/** Milliseconds of a time, for options of a plugin. */
export const milliseconds: ReadValue = (value) => {
  const ms = parseDurationMs(value);
  if (ms !== undefined && ms >= 0 && Number.isFinite(ms)) return ms;
  throw new UnusableValue('must be a time such as "30s" or "100 ms"');
};

/** Tasks per thread; `inf` holds nothing back. */
export const saturation: ReadValue = (value) => {
  if (value === Infinity || (typeof value === 'string' && /^\.?inf(inity)?$/i.test(value))) {
    return 'inf';
  }
  if (typeof value === 'number' && value > 0) return value;
  throw new UnusableValue('must be a number above 0, or inf');
};
