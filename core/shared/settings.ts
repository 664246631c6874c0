import type { SchemaOf } from '../api/definition.ts';
import type { UseEntry } from '../api/plugin.ts';
import { parseBytes, parseDurationMs } from '../util/units.ts';
import { isPlainObject } from '../util/values.ts';
import { ANY, DURATION, type Problem, type Rules, SIZE } from './schema.ts';

// Kinds of settings. A setting is a JSON schema that states type, unit, bounds, default and description; it serves the
// configuration, options in code, flags of the command line, and the options of plugins.
//
// Three keywords are our own. `unit`: the value may be written with a unit and arrives in this one. `infinite`: `inf` is
// allowed, and null means it. `extension`: in code the value may also be the definition, class or instance itself.

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
/** The values that people may write for a setting or a section. */
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
  readonly advised?: { readonly minimum: number; readonly advice: string };
  readonly infinite?: boolean;
}

/** A name, path or package; in code also the thing itself, or both with options. */
export type ExtensionInput =
  string | object | { readonly use: unknown; readonly options?: object; readonly onError?: string };

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

/** Yes or no. */
export const flag = (title: string, description: string, byDefault: boolean) =>
  ({ title, description, type: 'boolean', default: byDefault }) as Setting<boolean, boolean, true>;

/** A number from 0 to 1. */
export const fraction = (title: string, description: string, byDefault: number) =>
  ({ title, description, type: 'number', minimum: 0, maximum: 1, default: byDefault }) as Setting<
    number,
    number,
    true
  >;

/** A number with a unit; `examples` end its description. */
const quantity =
  <const Unit extends 'ms' | 'bytes' | 'share'>(
    unit: Unit,
    examples: string,
    limits: Limits = {},
  ) =>
  <const Rest extends Quantity>(title: string, text: string, rest?: Rest) =>
    ({
      title,
      description: `${text} ${examples}`,
      type: ['number', 'string'],
      unit,
      ...limits,
      ...rest,
    }) as Setting<number, DurationInput | BytesInput | OrNull<Rest>, HasDefault<Rest>> & {
      readonly unit: Unit;
    };

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

/** Any text, such as an address or a folder. */
export const text = <const Rest extends { readonly default?: string }>(
  title: string,
  description: string,
  rest: Rest & { readonly pattern?: string; readonly minLength?: number },
) => ({ title, description, type: 'string', ...rest }) as Setting<string, string, HasDefault<Rest>>;

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

const use = (what: string): object => ({
  title: `Which ${what}`,
  description:
    'A built-in name; a path that starts with ./ or / (relative to this file); or a package. #Name picks an export, else default.',
  type: 'string',
  extension: true,
});

const options = (what: string): object => ({
  title: `Options of the ${what}`,
  description: `Checked against the schema of the ${what}.`,
  type: 'object',
});

/**
 * An entry `{ use, options }`, or only a name.
 * @param what - what it names, for messages: `plugin`, `queuing policy`
 * @param rest - further keywords of the entry itself
 * @param more - further properties of the entry
 */
export const entry = <Entry extends UseEntry = UseEntry>(
  what: string,
  rest: object = {},
  more: Settings = {},
) =>
  ({
    type: ['object', 'string'],
    alone: 'use',
    additionalProperties: false,
    required: ['use'],
    properties: { use: use(what), options: options(what), ...more },
    ...rest,
  }) as object as Setting<Entry, ExtensionInput, false>;

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

// Settings of a section as options of a call in code: `killGrace: 5s` is `killGraceMs: 5000`.

/** The ends of the names of options, and their values, by the unit of the setting. */
const UNITS = {
  ms: { suffix: 'Ms', rule: DURATION, read: parseDurationMs },
  bytes: { suffix: 'Bytes', rule: SIZE, read: parseBytes },
} as const;

/** A section, as {@link section} makes it. */
interface Section {
  readonly properties: Settings;
}

type Suffix<One> = One extends { readonly unit: infer Unit extends keyof typeof UNITS }
  ? (typeof UNITS)[Unit]['suffix']
  : '';

type OptionOf<One> = One extends { readonly unit: string }
  ? number
  : One extends Section
    ? Partial<Checked<One>>
    : Written<One>;

/**
 * All settings of a section as options, of which none is required. Names of times and sizes end in their unit,
 * and their values are numbers: milliseconds or bytes.
 */
export type OptionsOf<One extends Section> = {
  readonly [
    Name in keyof One['properties'] & string as `${Name}${Suffix<One['properties'][Name]>}`
  ]?: OptionOf<One['properties'][Name]>;
};

/** The same, checked and complete. */
export type CheckedOptions<One extends Section> = {
  readonly [
    Name in keyof One['properties'] & string as `${Name}${Suffix<One['properties'][Name]>}`
  ]: Checked<One['properties'][Name]>;
};

/** Settings as the schema of the options of a plugin, which are numbers where a configuration has units. */
export function optionsSchema<One extends Section>(section: One): SchemaOf<CheckedOptions<One>> {
  const properties = settingsOf(section).map(({ option, read, setting }) => {
    if (read === undefined) return [option, setting] as const;
    const rest = Object.entries(setting).filter(([name]) => name !== 'unit');
    const { default: preset } = setting as { readonly default?: unknown };
    return [
      option,
      { ...Object.fromEntries<unknown>(rest), type: 'number', default: read(preset) },
    ] as const;
  });
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries<object>(properties),
  } as unknown as SchemaOf<CheckedOptions<One>>;
}

/** The settings of a configuration, as options of the plugin that they are for. */
export function optionsOf(section: Section, checked: object): Readonly<Record<string, unknown>> {
  const values = checked as Readonly<Record<string, unknown>>;
  return Object.fromEntries(settingsOf(section).map(({ key, option }) => [option, values[key]]));
}

/** Rules for the names of these options; the values are checked as parts of a configuration, by {@link writtenOf}. */
export function rulesOf<One extends Section>(section: One): Rules<OptionsOf<One>> {
  const rules = settingsOf(section).map(({ option, rule }) => [option, rule] as const);
  return Object.fromEntries(rules) as Rules<OptionsOf<One>>;
}

/** The options of a section, in the form of a configuration. */
export function writtenOf<One extends Section>(
  section: One,
  options: OptionsOf<One>,
): Written<One> & object {
  const written = settingsOf(section).flatMap(({ key, option, unit }) => {
    const value = (options as Readonly<Record<string, unknown>>)[option];
    return value === undefined
      ? []
      : [[key, unit === 'ms' ? timeText(value as number) : value] as const];
  });
  return Object.fromEntries(written) as Written<One> & object;
}

/** A time as flags and configurations are written, where a mere number is seconds. */
export function timeText(ms: number): string {
  return Number.isFinite(ms) ? `${ms} ms` : 'inf';
}

function settingsOf({ properties }: Section) {
  return Object.entries(properties).map(([key, setting]) => {
    const { unit = '' } = setting as { readonly unit?: string };
    const known = Object.hasOwn(UNITS, unit) ? UNITS[unit as keyof typeof UNITS] : undefined;
    const { suffix, rule, read } = known ?? { suffix: '', rule: ANY, read: undefined };
    return { key, option: `${key}${suffix}`, unit, rule, read, setting };
  });
}

/** A section without some of its settings. */
export function withoutSettings<Fields extends Settings, Name extends keyof Fields & string>(
  { properties }: { readonly properties: Fields },
  ...names: readonly Name[]
): { readonly properties: Omit<Fields, Name> } {
  const left = Object.entries(properties).filter(([name]) => !names.includes(name as Name));
  return { properties: Object.fromEntries(left) as Omit<Fields, Name> };
}

// Sections that belong to an extension.

type Values = Readonly<Record<string, unknown>>;
/** A checked configuration: sections by name. */
export type Sections = Readonly<Record<string, Values>>;

/**
 * The part of the configuration that belongs to a built-in extension. It is stated where the extension is; the application hands all of
 * them to the core, which knows none by name.
 */
export interface ConfigPart {
  readonly scheduler?: Settings;
  /** Sections beside `scheduler` and `worker`. */
  readonly sections?: Settings;
  /** Brings other spellings, of all sections, into the form of the schema. */
  spell?(written: unknown): Spelled;
  /** Its settings of the section `scheduler` in presets of policies, by the name of the preset. */
  readonly presets?: Readonly<Record<string, Values>>;
  /** Finds faults beyond the schema. */
  problems?(config: Sections): readonly Problem[];
  /** Applies what means something for other sections. */
  apply?(config: Sections): Sections;
  /** Settings that have no effect. @param written - the configuration as it is written, spelled */
  notes?(config: Sections, written: unknown): readonly Problem[];
  /** The plugin that the settings are for; undefined: none is loaded. */
  plugin?(scheduler: Values): PartPlugin | undefined;
}

/** A configuration in the form of the schema. */
export interface Spelled {
  readonly value: unknown;
  readonly problems?: readonly Problem[];
  /** Of words that were left out. */
  readonly notes?: readonly Problem[];
}

/** A plugin that is loaded for its section. */
export interface PartPlugin {
  readonly use: string;
  /** The section of `scheduler` that has its options. */
  readonly section: string;
  readonly options?: Values;
}

/** `sender-min` and `sender_min` are `senderMin`. */
export function camelCase(key: string): string {
  return key.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A copy of an object in which one field is replaced, if it has that field. */
export function within(root: unknown, key: string, change: (value: unknown) => unknown): unknown {
  if (!isPlainObject(root) || !Object.hasOwn(root, key)) return root;
  return { ...root, [key]: change(root[key]) };
}
