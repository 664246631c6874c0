import { YardmasterError } from '../../core/api/index.ts';

/** What kinds of parameters there are. */
const KINDS = {
  texts: {
    wanted: 'a list of strings',
    is: (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  },
  flag: { wanted: 'true or false', is: (value: unknown) => typeof value === 'boolean' },
  count: {
    wanted: 'a whole number, at least 0',
    is: (value: unknown) => Number.isInteger(value) && (value as number) >= 0,
  },
  /** At least 1; Infinity: all. */
  copies: {
    wanted: 'a whole number, at least 1, or Infinity',
    is: (value: unknown) =>
      (Number.isInteger(value) || value === Infinity) && (value as number) >= 1,
  },
  amount: {
    wanted: 'a number, at least 0',
    is: (value: unknown) => Number.isFinite(value) && (value as number) >= 0,
  },
  text: { wanted: 'a string', is: (value: unknown) => typeof value === 'string' },
  bytes: { wanted: 'bytes', is: (value: unknown) => value instanceof Uint8Array },
  counts: {
    wanted: 'a list of whole numbers',
    is: (value: unknown) => Array.isArray(value) && value.every((item) => Number.isInteger(item)),
  },
  /** Any plain data. */
  data: { wanted: 'plain data', is: () => true },
} as const;

type Kind = keyof typeof KINDS;
interface Types {
  texts: readonly string[];
  flag: boolean;
  count: number;
  copies: number;
  amount: number;
  text: string;
  bytes: Uint8Array;
  counts: readonly number[];
  data: unknown;
}

/** Parameters of a command, by name. */
export type Read<Shape extends Readonly<Record<string, Kind>>> = {
  readonly [Name in keyof Shape]?: Types[Shape[Name]];
};

/**
 * Checks what came from a client.
 * @throws YardmasterError `ERR_PROTOCOL` naming command and parameter
 */
export function readParameters<const Shape extends Readonly<Record<string, Kind>>>(
  command: string,
  shape: Shape,
  given: unknown,
): Read<Shape> {
  const parameters = given ?? {};
  if (typeof parameters !== 'object' || Array.isArray(parameters)) {
    throw refusal(command, `takes its parameters as an object, got ${String(given)}`);
  }
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null) continue;
    if (!Object.hasOwn(shape, name)) {
      const known = Object.keys(shape).join(', ');
      throw refusal(command, `has no parameter "${name}"; there are ${known}`, name);
    }
    const { wanted, is } = KINDS[shape[name] as Kind];
    if (!is(value))
      throw refusal(command, `wants ${wanted} as ${name}, got ${String(value)}`, name);
    read[name] = value;
  }
  return read as Read<Shape>;
}

function refusal(command: string, what: string, field?: string): YardmasterError {
  return new YardmasterError('ERR_PROTOCOL', `the command "${command}" ${what}`, {
    command,
    ...(field === undefined ? {} : { field }),
  });
}
