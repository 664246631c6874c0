/** How commands declare their parameters: by a JSON schema, of which the type of the parameters comes. */

/** The parameters of a command as a JSON schema. */
export interface ParametersSchema {
  readonly type: 'object';
  /** Parameters by name. */
  readonly properties: Readonly<Record<string, object>>;
  /** Names of those that have to be given. Default: none. */
  readonly required?: readonly string[];
}

/** The type of the values that a JSON schema allows, as far as its types and enumerations say it. */
export type ValueOf<Schema> = Schema extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { readonly type: 'string' }
    ? string
    : Schema extends { readonly type: 'boolean' }
      ? boolean
      : Schema extends { readonly type: 'number' | 'integer' }
        ? number
        : Schema extends { readonly type: 'array'; readonly items: infer Item }
          ? readonly ValueOf<Item>[]
          : Schema extends { readonly bytes: true }
            ? Uint8Array
            : Schema extends { readonly type: 'object' }
              ? Readonly<Record<string, unknown>>
              : unknown;

type RequiredNames<Schema> = Schema extends { readonly required: readonly (infer Name)[] }
  ? Name
  : never;

/** The parameters that a handler receives: those of the schema, checked. */
export type ParametersOf<Schema extends ParametersSchema> = {
  readonly [
    Name in keyof Schema['properties'] as Name extends RequiredNames<Schema> ? Name : never
  ]: ValueOf<Schema['properties'][Name]>;
} & {
  readonly [
    Name in keyof Schema['properties'] as Name extends RequiredNames<Schema> ? never : Name
  ]?: ValueOf<Schema['properties'][Name]>;
};

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
