/** All extensions have this in common: a version of the contract, options by a schema, and nothing that is never called. */
import { briefly, isObject, YardmasterError } from './errors.ts';
import type { Logger } from './plugin.ts';
import type { Provider } from './token.ts';

/** The version of the contract that this package has, which extensions say they were written for. */
export const API_VERSION = 1;
export type ApiVersion = typeof API_VERSION;

/** The fault of a definition that does not say for which version it was written. */
export const MISSING_VERSION = `it does not say for which version it is written: apiVersion: ${API_VERSION}`;

/**
 * Refuses an extension of any kind and form that was written for another version. One that does not say for which, which
 * only definitions have to, was written for the first.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkVersion(extension: unknown, source: string): void {
  const { name, apiVersion: own, constructor } = (extension ?? {}) as Versioned;
  const version = own ?? constructor?.apiVersion ?? 1;
  if (version === API_VERSION) return;
  let problem = `its apiVersion must be the number ${API_VERSION} (got ${briefly(version)})`;
  if (Number.isSafeInteger(version)) {
    const advice =
      (version as number) > API_VERSION
        ? 'update yardmaster, or install an older version of it; its author can write it for this version'
        : 'install a newer version of it, or change it as docs/plugins.md#versions says';
    problem = `it is written for version ${briefly(version)} of the contract of extensions, and this is version ${API_VERSION}: ${advice}`;
  }
  const shown = typeof name === 'string' && name !== '' ? `${name} (${source})` : source;
  throw new YardmasterError('ERR_PLUGIN_LOAD', `${shown} cannot be loaded: ${problem}`, {
    source,
    apiVersion: version,
    supported: [API_VERSION],
  });
}

interface Versioned {
  readonly name?: unknown;
  readonly apiVersion?: unknown;
  readonly constructor?: { readonly apiVersion?: unknown };
}

/**
 * Refuses what is no definition at all, where it is written. What its fields have to be is checked when it is used.
 *
 * @param call - that it was given to: `definePlugin`
 * @param shape - of a definition, for the message
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkDefinition(call: string, definition: unknown, shape: string): void {
  if (isObject(definition) && Object.keys(definition).length > 0) return;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${call} wants a definition, an object such as ${shape}, got ${briefly(definition)}`,
    { call },
  );
}

/** A schema whose values have a type that the compiler is told, because it cannot read the schema. */
export interface SchemaOf<Value> {
  /** Never set; carries the type. */
  readonly valueType: Value;
}

/** The values that a JSON schema allows once they are checked, as far as its keywords say it to the compiler. */
export type ValueOf<Schema> =
  Schema extends SchemaOf<infer Value>
    ? Value
    : Schema extends { readonly const: infer Value }
      ? Value
      : Schema extends { readonly enum: readonly (infer Value)[] }
        ? Value
        : Schema extends { readonly unit: string }
          ? number
          : Schema extends { readonly bytes: true }
            ? Uint8Array
            : Schema extends { readonly anyOf: readonly (infer One)[] }
              ? ValueOf<One>
              : Schema extends { readonly type: infer Type }
                ? ValueOfType<Schema, Type extends readonly (infer One)[] ? One : Type>
                : unknown;

type ValueOfType<Schema, Type> = Type extends 'string'
  ? string
  : Type extends 'boolean'
    ? boolean
    : Type extends 'number' | 'integer'
      ? number
      : Type extends 'null'
        ? null
        : Type extends 'array'
          ? Schema extends { readonly items: infer Item }
            ? readonly ValueOf<Item>[]
            : readonly unknown[]
          : Type extends 'object'
            ? FieldsOf<Schema>
            : unknown;

/** Those that are required or have a default are there once the value is checked. */
type FieldsOf<Schema> = Schema extends { readonly properties: infer Properties }
  ? {
      readonly [
        Name in keyof Properties as IsThere<Schema, Properties, Name> extends true ? Name : never
      ]: ValueOf<Properties[Name]>;
    } & {
      readonly [
        Name in keyof Properties as IsThere<Schema, Properties, Name> extends true ? never : Name
      ]?: ValueOf<Properties[Name]>;
    }
  : Schema extends { readonly additionalProperties: infer Values extends object }
    ? Readonly<Record<string, ValueOf<Values>>>
    : Readonly<Record<string, unknown>>;

type IsThere<Schema, Properties, Name extends keyof Properties> = Properties[Name] extends {
  readonly default: unknown;
}
  ? true
  : Schema extends { readonly required: readonly (infer Required)[] }
    ? Name extends Required
      ? true
      : false
    : false;

/** The schema of an extension without one. */
export type NoOptions = SchemaOf<Record<string, never>>;

/**
 * The checked options of an extension. `never` for a schema that the compiler cannot read, so that its author has to
 * say what they are.
 */
export type OptionsOf<Schema> = unknown extends ValueOf<Schema> ? never : ValueOf<Schema>;

/** The definition of an extension that its owner makes from a context and the options: a transport, an executor, a store. */
export interface MadeDefinition<Kind extends string, Context, Made, Options> {
  readonly kind: Kind;
  readonly name: string;
  readonly apiVersion: ApiVersion;
  /** JSON schema of the options. */
  readonly optionsSchema?: object;
  create(context: Context, options: Options): Made;
}

/** The same as an author writes it: the schema gives the type of the options. */
export type WrittenDefinition<Context, Made, Schema> = Omit<
  MadeDefinition<string, Context, Made, OptionsOf<Schema>>,
  'kind' | 'optionsSchema'
> & { readonly optionsSchema?: Schema };

/** Refuses methods that nothing would ever call. Names that begin with `_` are free. */
export type OnlyMembers<Given, Known extends PropertyKey> = {
  readonly [Name in keyof Given]: Name extends Known | `_${string}`
    ? Given[Name]
    : Given[Name] extends (...args: never[]) => unknown
      ? `nothing calls a method of this name`
      : Given[Name];
};

/** Providers whose classes, functions and values are of the type of their tokens. */
export type ProvidersOf<Parts> = { readonly [Index in keyof Parts]: Provider<Parts[Index]> };

// Commands declare their parameters by a JSON schema, from which the type of the parameters comes.

/** The parameters of a command as a JSON schema. */
export interface ParametersSchema {
  readonly type: 'object';
  /** Parameters by name. */
  readonly properties: Readonly<Record<string, object>>;
  /** Names of those that have to be given. Default: none. */
  readonly required?: readonly string[];
}

/** The parameters that a handler receives: those of the schema, checked. */
export type ParametersOf<Schema extends ParametersSchema> = FieldsOf<Schema>;

type Schemas = Readonly<Record<string, object>>;

/** The schema of parameters of which the first must be given and the others may be. */
export function parameters<
  const Required extends Schemas,
  const Optional extends Schemas = Required,
>(
  required: Required,
  optional?: Optional,
): {
  readonly type: 'object';
  readonly properties: Required & Optional;
  readonly required: readonly (keyof Required & string)[];
} {
  return {
    type: 'object',
    properties: { ...required, ...optional } as Required & Optional,
    required: Object.keys(required),
  };
}

export const TEXT = { type: 'string' } as const;
export const TEXTS = { type: 'array', items: TEXT } as const;
/** A text that is not empty. */
export const NAME = { type: 'string', minLength: 1 } as const;
export const FLAG = { type: 'boolean' } as const;
/** A whole number, at least 0. */
export const COUNT = { type: 'integer', minimum: 0 } as const;
/** A whole number, at least 1, or Infinity. */
export const COPIES = { type: 'integer', minimum: 1 } as const;
/** A finite number, at least 0. */
export const AMOUNT = { type: 'number', minimum: 0, maximum: Number.MAX_VALUE } as const;
/** Milliseconds above 0, or Infinity. */
export const TIMEOUT = { type: 'number', exclusiveMinimum: 0 } as const;
export const BYTES = { bytes: true } as const;
/** An object with fields of any kind. */
export const OBJECT = { type: 'object' } as const;
/** Any plain data. */
export const DATA = {} as const;
export const NO_PARAMETERS = parameters({});

const nothing = (): void => undefined;

/** Writes nothing: for a policy that its author makes in a test. */
export const SILENT: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
