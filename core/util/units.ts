/** Times and sizes as people write them, turned into base units, milliseconds and bytes, and as people read them. */

const QUANTITY = /^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-zµμ]*)\s*$/i;
const PERCENT = /^\s*(\d+(?:\.\d+)?)\s*%\s*$/;
const INFINITE = /^\s*\.?inf(?:inity)?\s*$/i;

const MILLISECONDS: readonly (readonly [names: string, factor: number])[] = [
  ['ns nanosecond nanoseconds', 1e-6],
  ['us µs μs microsecond microseconds', 1e-3],
  ['ms millisecond milliseconds', 1],
  ['s sec second seconds', 1000],
  ['m min minute minutes', 60_000],
  ['h hr hour hours', 3_600_000],
  ['d day days', 86_400_000],
  ['w week weeks', 604_800_000],
];
const MS_BY_UNIT = table(MILLISECONDS);

const PREFIXES = 'kmgtp';
const BYTES_BY_UNIT = new Map<string, number>([['', 1]]);
BYTES_BY_UNIT.set('b', 1).set('byte', 1).set('bytes', 1);
for (let index = 0; index < PREFIXES.length; index++) {
  const prefix = PREFIXES.charAt(index);
  const decimal = 1000 ** (index + 1);
  const binary = 1024 ** (index + 1);
  BYTES_BY_UNIT.set(prefix, decimal).set(`${prefix}b`, decimal);
  BYTES_BY_UNIT.set(`${prefix}i`, binary).set(`${prefix}ib`, binary);
}

/**
 * `"2s"`, `"100 ms"`, `"5 minutes"`, `"inf"` and numbers, which are seconds as in Dask.
 * Units are case-insensitive; `m` is minutes.
 * @returns milliseconds, possibly negative or Infinity; undefined when it cannot be read
 */
export function parseDurationMs(value: unknown): number | undefined {
  return parse(value, (unit) => (unit === '' ? 1000 : MS_BY_UNIT.get(unit)));
}

/**
 * `"50MB"` (10⁶), `"1kiB"` and `"64 MiB"` (2¹⁰), `"inf"` and numbers, which are bytes.
 * Units are case-insensitive; a trailing `/s` of a bandwidth is accepted.
 * @returns whole bytes, possibly negative or Infinity; undefined when it cannot be read
 */
export function parseBytes(value: unknown): number | undefined {
  const plain = typeof value === 'string' ? value.replace(/\/s\s*$/i, '') : value;
  const bytes = parse(plain, (unit) => BYTES_BY_UNIT.get(unit));
  return bytes === undefined ? undefined : Math.trunc(bytes);
}

/**
 * `"80%"` of something, a number up to 1, or a size as {@link parseBytes} reads it.
 * @returns a share when it is at most 1, else bytes; undefined when it cannot be read or is not above 0
 */
export function parseShareOrBytes(value: unknown): number | undefined {
  const percent = typeof value === 'string' ? PERCENT.exec(value)?.[1] : undefined;
  if (percent !== undefined) {
    const share = Number(percent) / 100;
    return share > 0 && share <= 1 ? share : undefined;
  }
  if (typeof value === 'number' && value > 0 && value <= 1) return value;
  const bytes = parseBytes(value);
  return bytes !== undefined && bytes > 1 ? bytes : undefined;
}

function parse(value: unknown, factorOf: (unit: string) => number | undefined): number | undefined {
  if (typeof value === 'number') {
    return Number.isNaN(value) ? undefined : value * (factorOf('') ?? 1);
  }
  if (typeof value !== 'string') return undefined;
  if (INFINITE.test(value)) return Infinity;
  const match = QUANTITY.exec(value);
  const factor = factorOf((match?.[2] ?? '').toLowerCase());
  return match === null || factor === undefined ? undefined : Number(match[1]) * factor;
}

function table(
  units: readonly (readonly [names: string, factor: number])[],
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [names, factor] of units) {
    for (const name of names.split(' ')) found.set(name, factor);
  }
  return found;
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes for people, the one form of all pages, commands and reports: `1.5 GiB`, `512 MiB`. */
export function sizeText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  // What would be written as 1024 is one of the next unit.
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit < SIZES.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${SIZES[unit] ?? ''}`;
}

/** A length of time for people: `4.2 ms`, `96.3 s`, `8 min`, `2.5 h`. */
export function secondsText(seconds: number): string {
  if (seconds === 0) return '0 s';
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
