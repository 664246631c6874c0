import type { ErrorObject, ValidateFunction } from 'ajv';
import { allowedValues } from './allowed-values.ts';
import { compileSchema } from './compile-schema.ts';
import { type Problem, type Segment } from './errors.ts';
import { hint, show } from '../shared/words.ts';
import { isPlainObject } from '../util/plain-object.ts';
import { prepare, type SchemaNode } from './prepare.ts';

/** A value with defaults and base units, or what is wrong with it. */
export interface Checked {
  readonly value: unknown;
  readonly problems: readonly Problem[];
}

/** More keys than these are not listed in a message. */
const LISTED_KEYS_MAX = 12;

const compiled = new WeakMap<object, ValidateFunction>();

/**
 * Fills in defaults, turns units into numbers, and finds every problem at once.
 * Unknown keys are refused unless the schema allows them.
 * @param at - where the value stands in the whole configuration
 * @throws Error when the schema itself is not valid
 */
export function check(schema: object, value: unknown, at: readonly Segment[] = []): Checked {
  const problems: Problem[] = [];
  const prepared = prepare(schema, value, at, problems);
  problems.push(...problemsOf(schema, prepared, at));
  return { value: prepared, problems };
}

/**
 * What is wrong with a value that is already in base units. Fills in defaults in place.
 * @throws Error when the schema itself is not valid
 */
export function problemsOf(
  schema: object,
  value: unknown,
  at: readonly Segment[] = [],
): readonly Problem[] {
  const validate = validatorOf(schema);
  if (validate(value)) return [];
  return relevant(validate.errors ?? []).map((error) => problemOf(error, at));
}

/** Freezes what is plain; leaves buffers, instances, and what a `use` holds alone. */
export function deepFreeze<T>(value: T): T {
  if (Array.isArray(value)) value.forEach(deepFreeze);
  else if (isPlainObject(value)) {
    for (const [key, field] of Object.entries(value)) if (key !== 'use') deepFreeze(field);
  } else return value;
  return Object.freeze(value) as T;
}

/** @throws Error when the schema is not valid */
export function validatorOf(schema: object): ValidateFunction {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = compileSchema(forAjv(schema));
    compiled.set(schema, validate);
  }
  return validate;
}

/** The schema for values that {@link prepare} has been through. */
export function forAjv(schema: object): object {
  return rewritten(schema, true) as object;
}

function rewritten(node: unknown, isRoot: boolean): unknown {
  if (Array.isArray(node)) return node.map((item) => rewritten(item, false));
  if (!isPlainObject(node)) return node;
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) {
    copy[key] =
      key === 'default' || key === 'enum' || key === 'const' ? value : rewritten(value, false);
  }
  if (copy['extension'] === true) delete copy['type'];
  if (typeof copy['unit'] === 'string') {
    copy['type'] = 'number';
    delete copy['default'];
  }
  const isOpen = 'additionalProperties' in copy || 'patternProperties' in copy;
  if (isRoot && copy['type'] === 'object' && !isOpen) copy['additionalProperties'] = false;
  return copy;
}

/** Leaves out what only says that one of several alternatives did not fit. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const unions = errors.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf');
  return errors.filter(
    (error) =>
      error.keyword !== 'if' &&
      !unions.some(
        (union) => error !== union && error.schemaPath.startsWith(`${union.schemaPath}/`),
      ),
  );
}

/** A key that is near, or else all of them where they fit into a line. */
function orAll(key: string, known: readonly string[]): string {
  const near = hint(key, known);
  if (near !== '' || known.length === 0 || known.length > LISTED_KEYS_MAX) return near;
  return `; known ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
}

function problemOf(error: ErrorObject, root: readonly Segment[]): Problem {
  const at = [...root, ...segmentsOf(error.instancePath)];
  const { params, parentSchema } = error as {
    params: Record<string, unknown>;
    parentSchema?: SchemaNode & {
      readonly description?: string;
      readonly enum?: readonly unknown[];
      readonly examples?: readonly unknown[];
    };
  };
  const got = `(got ${show(error.data)})`;
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = params['additionalProperty'] as string;
      const known = Object.keys(parentSchema?.properties ?? {});
      return {
        at: [...at, key],
        message: `is not a known key${orAll(key, known)}`,
        aboutKey: true,
      };
    }
    case 'required':
      return { at: [...at, params['missingProperty'] as string], message: 'is required' };
    case 'enum': {
      const allowed = (parentSchema?.enum ?? []).map(String);
      const suggestion = typeof error.data === 'string' ? hint(error.data, allowed) : '';
      return { at, message: `must be one of ${allowed.join(', ')} ${got}${suggestion}` };
    }
    case 'anyOf':
    case 'oneOf': {
      const what = allowedValues(parentSchema) ?? 'one of several forms';
      return { at, message: `must be ${what} ${got}` };
    }
    case 'type':
      return { at, message: `must be ${typeText(params['type'])} ${got}` };
    case 'pattern': {
      const example = parentSchema?.examples?.[0] ?? parentSchema?.default;
      const like = typeof example === 'string' ? `, as ${show(example)} does` : '';
      return { at, message: `${error.message ?? 'must match a pattern'}${like} ${got}` };
    }
    case 'not':
      return { at, message: `cannot be set. ${parentSchema?.description ?? ''}`, aboutKey: true };
    case 'extension':
      return { at, message: `must be a name, a path or a package ${got}` };
    default: {
      const { unit } = parentSchema ?? {};
      const what = error.message ?? `breaks ${error.keyword}`;
      if (unit === undefined) return { at, message: `${what} ${got}` };
      return { at, message: `${what} ${unit} (got ${show(error.data)} ${unit})` };
    }
  }
}

function typeText(type: unknown): string {
  const names = Array.isArray(type) ? (type as string[]) : String(type).split(',');
  return names
    .filter((name) => name !== 'null')
    .map((name) => `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`)
    .join(' or ');
}

function segmentsOf(pointer: string): Segment[] {
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
