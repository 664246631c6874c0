/** A time as people write it: `"2s"`, `"100 ms"`, `"inf"`; a number is seconds. */
export type DurationInput = string | number;
/** A size as people write it: `"64 MiB"`, `"50MB"`; a number is bytes. */
export type BytesInput = string | number;

declare const types: unique symbol;

/**
 * The JSON schema of one setting, which also knows the types of its values.
 *
 * @typeParam Value - once it is checked: times in milliseconds, sizes in bytes
 * @typeParam Written - as people write it
 * @typeParam IsComplete - whether it has a value when nothing is written
 */
export interface Setting<Value, Written = Value, IsComplete extends boolean = boolean> {
  readonly title: string;
  /** Of the type checker alone. */
  readonly [types]?: readonly [value: Value, written: Written, isComplete: IsComplete];
}

/** Settings by name. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The value of a setting, or of a section, once it is checked. */
export type Checked<One> = One extends Setting<infer Value, unknown> ? Value : never;
/** What people may write for a setting or a section. */
export type Written<One> = One extends Setting<unknown, infer Input> ? Input : never;

type CheckedOf<Fields extends Settings> = {
  readonly [
    Name in keyof Fields as Fields[Name] extends Setting<unknown, unknown, true> ? Name : never
  ]: Checked<Fields[Name]>;
} & {
  readonly [
    Name in keyof Fields as Fields[Name] extends Setting<unknown, unknown, true> ? never : Name
  ]?: Checked<Fields[Name]>;
};

type HasDefault<Rest> = Rest extends { readonly default: unknown } ? true : false;
type OrNull<Rest> = Rest extends { readonly infinite: true } ? null : never;

interface Limits {
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A number that may be written with a unit. `infinite`: `inf` is allowed, and null means it. */
interface Quantity extends Limits {
  readonly default?: string | number;
  readonly infinite?: boolean;
}

/** A number with a unit; `examples` end its description. */
const quantity =
  (unit: string, examples: string, limits: Limits = {}) =>
  <const Rest extends Quantity>(title: string, text: string, rest?: Rest) =>
    ({
      title,
      description: `${text} ${examples}`,
      type: ['number', 'string'],
      unit,
      ...limits,
      ...rest,
    }) as Setting<number, DurationInput | BytesInput | OrNull<Rest>, HasDefault<Rest>>;

/** A time; it arrives in milliseconds. */
export const duration = quantity('ms', 'Such as 2s, 100 ms, 5 minutes; a number is seconds.', {
  minimum: 0,
});

/** A size; it arrives in bytes. */
export const bytes = quantity('bytes', 'Such as 50MB (10^6), 64 MiB (2^20); a number is bytes.', {
  minimum: 0,
});

/** A part of the memory, or a size; it arrives as a share when it is at most 1, else in bytes. */
export const memory = quantity(
  'share',
  'Such as 80%, 4 GiB; a number up to 1 is a share, a larger one is bytes.',
);

/** Yes or no. */
export const flag = (title: string, description: string, byDefault: boolean) =>
  ({ title, description, type: 'boolean', default: byDefault }) as Setting<boolean, boolean, true>;

/** A whole number. */
export const whole = <const Rest extends Limits & { readonly default?: number }>(
  title: string,
  description: string,
  rest?: Rest,
) =>
  ({ title, description, type: 'integer', minimum: 0, ...rest }) as Setting<
    number,
    number,
    HasDefault<Rest>
  >;

/** A number from 0 to 1. */
export const fraction = (title: string, description: string, byDefault: number) =>
  ({ title, description, type: 'number', minimum: 0, maximum: 1, default: byDefault }) as Setting<
    number,
    number,
    true
  >;

/** Any text, such as an address or a folder. */
export const text = <const Rest extends { readonly default?: string }>(
  title: string,
  description: string,
  rest: Rest & { readonly pattern?: string; readonly minLength?: number },
) => ({ title, description, type: 'string', ...rest }) as Setting<string, string, HasDefault<Rest>>;

/** One of some words. */
export const choice = <const Word extends string, const Rest extends { readonly default?: Word }>(
  title: string,
  description: string,
  words: readonly Word[],
  rest?: Rest,
) =>
  ({ title, description, type: 'string', enum: words, ...rest }) as Setting<
    Word,
    Word,
    HasDefault<Rest>
  >;

/** Values by names that the writer chooses. */
export const table = <Value, Input, const Rest extends { readonly default?: object }>(
  title: string,
  description: string,
  values: Setting<Value, Input>,
  rest?: Rest,
) =>
  ({ title, description, type: 'object', ...rest, additionalProperties: values }) as Setting<
    Readonly<Record<string, Value>>,
    Readonly<Record<string, Input>>,
    HasDefault<Rest>
  >;

/** Values in an order. */
export const list = <Value, Input>(
  title: string,
  description: string,
  items: Setting<Value, Input>,
  byDefault: readonly object[] | readonly string[] = [],
) =>
  ({ title, description, type: 'array', default: byDefault, items }) as Setting<
    readonly Value[],
    readonly Input[],
    true
  >;

/** Settings under one name, which may be left out. */
export const section = <const Fields extends Settings>(
  title: string,
  description: string,
  properties: Fields,
) =>
  ({
    title,
    description,
    type: 'object',
    additionalProperties: false,
    default: {},
    properties,
  }) as unknown as Setting<
    CheckedOf<Fields>,
    { readonly [Name in keyof Fields]?: Written<Fields[Name]> },
    true
  > & {
    readonly properties: Fields;
  };
