import { allowedValues } from './allowed-values.ts';
import { type Problem, type Segment } from './errors.ts';
import { show } from '../shared/words.ts';
import { isPlainObject } from '../util/plain-object.ts';
import { parseBytes, parseDurationMs, parseShareOrBytes } from '../util/units.ts';

/** The part of JSON schema that is read here; ajv reads the rest. */
export interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly items?: SchemaNode;
  readonly default?: unknown;
  /** Base unit in which the value arrives: `ms`, `s` or `bytes`; `share`: a share up to 1, or bytes. */
  readonly unit?: string;
  /** `inf` is allowed, and null means it. */
  readonly infinite?: boolean;
  /** Names an extension; in code it may be the thing itself, which must stay the same object. */
  readonly extension?: boolean;
}

interface Unit {
  readonly what: string;
  readonly read: (value: unknown) => number | undefined;
}

const UNITS: Readonly<Record<string, Unit>> = {
  ms: { what: 'a time such as "2s" or "100 ms"', read: parseDurationMs },
  s: {
    what: 'a time such as "2s" or "100 ms"',
    read: (value) => {
      const ms = parseDurationMs(value);
      return ms === undefined ? undefined : ms / 1000;
    },
  },
  bytes: { what: 'a size such as "64 MiB" or "50MB"', read: parseBytes },
  share: { what: 'a share such as "80%", or a size such as "4 GiB"', read: parseShareOrBytes },
};

/**
 * A copy of a value in which defaults are filled in, units are numbers in base units, and null means
 * "not given". What is wrong with a unit goes to `problems`; everything else is for ajv to find.
 * Objects that are not plain (classes, definitions' functions) are passed on as they are.
 */
export function prepare(
  schema: SchemaNode,
  value: unknown,
  at: readonly Segment[],
  problems: Problem[],
): unknown {
  if (schema.extension === true) return value;
  if (schema.unit !== undefined && schema.unit in UNITS) {
    return prepareQuantity(schema, value, at, problems);
  }
  if (value === undefined || (value === null && !allowsNull(schema))) {
    if (schema.default === undefined) return undefined;
    return prepare({ ...schema, default: undefined }, schema.default, at, problems);
  }
  if (Number.isNaN(value)) {
    problems.push({ at, message: `must be ${allowedValues(schema) ?? 'a number'} (got NaN)` });
    return undefined;
  }
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    return value.map((item, index) => prepare(items, item, [...at, index], problems));
  }
  return isPlainObject(value) ? prepareObject(schema, value, at, problems) : value;
}

function prepareObject(
  schema: SchemaNode,
  value: Record<string, unknown>,
  at: readonly Segment[],
  problems: Problem[],
): Record<string, unknown> {
  const { properties = {}, additionalProperties } = schema;
  const rest = typeof additionalProperties === 'object' ? additionalProperties : {};
  const prepared: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(properties), ...Object.keys(value)])) {
    const node = Object.hasOwn(properties, key) ? properties[key] : rest;
    const field = Object.hasOwn(value, key) ? value[key] : undefined;
    const item = prepare(node as SchemaNode, field, [...at, key], problems);
    if (item === undefined) continue;
    Object.defineProperty(prepared, key, {
      value: item,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return prepared;
}

function prepareQuantity(
  schema: SchemaNode,
  given: unknown,
  at: readonly Segment[],
  problems: Problem[],
): number | undefined {
  const { what, read } = UNITS[schema.unit as string] as Unit;
  const value = given ?? (given === null && schema.infinite === true ? Infinity : schema.default);
  if (value === undefined) return undefined;
  const quantity = read(value);
  const isUsable =
    quantity !== undefined && (Number.isFinite(quantity) || schema.infinite === true);
  if (isUsable) return quantity;
  problems.push({
    at,
    message: `must be ${what}${schema.infinite === true ? ', or inf' : ''} (got ${show(value)})`,
  });
  return schema.default === undefined ? undefined : read(schema.default);
}

function allowsNull({ type }: SchemaNode): boolean {
  return type === 'null' || (Array.isArray(type) && type.includes('null'));
}
