import type { ErrorObject, ValidateFunction } from 'ajv';
import { YardmasterError } from '../api/errors.ts';
import { hint, show } from '../shared/words.ts';
import { parseBytes, parseDurationMs, parseShareOrBytes } from '../util/units.ts';
import { isPlainObject } from '../util/values.ts';
import { compileSchema } from './compile-schema.ts';

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
 * Checks a value that is already in base units. Fills in defaults in place. @returns its problems
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

/** A configuration without its invalid parts. */
interface ValidParts {
  readonly value: unknown;
  /** The place at which a part of {@link value} was written: items of lists move up when others are removed. */
  writtenAt(at: readonly Segment[]): readonly Segment[];
}

/**
 * Removes from a configuration all that a check finds wrong, and what is incomplete without it.
 * @param problems - what is wrong with it as it is written
 * @param check - finds what is wrong with what is left; O(depth) calls
 */
export function keepValidParts(
  root: unknown,
  problems: readonly Problem[],
  check: (rest: unknown) => readonly Problem[],
): ValidParts {
  const indices = new Map<unknown, number[]>();
  const top = { root: copied(root, indices) };
  let wrong = problems;
  while (wrong.length > 0) {
    // Later items of a list go first, so that the places of the earlier ones stay right.
    const ordered = [...wrong].sort((a, b) => compareBackwards(a.at, b.at));
    const targets = new Set(ordered.map(({ at }) => JSON.stringify(existing(top.root, at))));
    for (const target of targets) remove(top, JSON.parse(target) as Segment[], indices);
    wrong = check(top.root);
  }
  return { value: top.root, writtenAt: (at) => writtenAt(top.root, at, indices) };
}

/** An origin that locates parts of what is left where they were written. */
export function originOf(parts: ValidParts, origin: ConfigOrigin): ConfigOrigin {
  return {
    file: origin.file,
    locate: (at, aboutKey) => origin.locate(at, aboutKey),
    writtenAt: (at) => parts.writtenAt(at),
  };
}

/** The longest beginning of the path that leads somewhere. */
function existing(root: unknown, at: readonly Segment[]): readonly Segment[] {
  let value = root;
  for (const [depth, segment] of at.entries()) {
    const isThere = Array.isArray(value)
      ? typeof segment === 'number' && segment < value.length
      : isPlainObject(value) && Object.hasOwn(value, segment);
    if (!isThere) return at.slice(0, depth);
    value = (value as Record<Segment, unknown>)[segment];
  }
  return at;
}

function remove(
  top: { root: unknown },
  at: readonly Segment[],
  indices: ReadonlyMap<unknown, number[]>,
): void {
  const last = at.at(-1);
  if (last === undefined) {
    top.root = {};
    return;
  }
  const parent = at
    .slice(0, -1)
    .reduce<unknown>((value, segment) => (value as Record<Segment, unknown>)[segment], top.root);
  if (Array.isArray(parent)) {
    parent.splice(last as number, 1);
    indices.get(parent)?.splice(last as number, 1);
  } else if (isPlainObject(parent)) Reflect.deleteProperty(parent, last);
}

function writtenAt(
  root: unknown,
  at: readonly Segment[],
  indices: ReadonlyMap<unknown, number[]>,
): readonly Segment[] {
  let value = root;
  return at.map((segment) => {
    const written = typeof segment === 'number' ? indices.get(value)?.[segment] : undefined;
    value = (value as Record<Segment, unknown> | undefined)?.[segment];
    return written ?? segment;
  });
}

/** Copies objects and lists; what a `use` holds stays the same object. */
function copied(value: unknown, indices: Map<unknown, number[]>): unknown {
  if (Array.isArray(value)) {
    const list = value.map((item) => copied(item, indices));
    indices.set(
      list,
      list.map((_, index) => index),
    );
    return list;
  }
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key,
      key === 'use' ? field : copied(field, indices),
    ]),
  );
}

function compareBackwards(a: readonly Segment[], b: readonly Segment[]): number {
  for (let depth = 0; depth < Math.min(a.length, b.length); depth++) {
    const [one, other] = [a[depth], b[depth]];
    if (one === other) continue;
    if (typeof one === 'number' && typeof other === 'number') return other - one;
    return String(other) < String(one) ? -1 : 1;
  }
  return b.length - a.length;
}

// Puts into words which values a JSON schema allows.

interface ValueSchema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly ValueSchema[];
  readonly oneOf?: readonly ValueSchema[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
}

/** `a number above 0 or "inf"`; undefined when the schema says too much for a few words. */
export function allowedValues(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { anyOf, oneOf, enum: values, type } = schema as ValueSchema;
  const alternatives = anyOf ?? oneOf;
  if (alternatives !== undefined) return oneOfThese(alternatives.map(allowedValues));
  if ('const' in schema) return show(schema.const);
  if (values !== undefined) return oneOfThese(values.map(show));
  if (type === undefined) return undefined;
  const types = (typeof type === 'string' ? [type] : type).filter((name) => name !== 'null');
  return oneOfThese(types.map((name) => withArticle(name) + limits(name, schema)));
}

function oneOfThese(texts: readonly (string | undefined)[]): string | undefined {
  return texts.some((text) => text === undefined) ? undefined : texts.join(' or ');
}

function withArticle(type: string): string {
  return `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`;
}

function limits(type: string, schema: ValueSchema): string {
  if (type !== 'number' && type !== 'integer') return '';
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  const texts: string[] = [];
  if (minimum !== undefined) texts.push(`of at least ${minimum}`);
  if (exclusiveMinimum !== undefined) texts.push(`above ${exclusiveMinimum}`);
  if (maximum !== undefined) texts.push(`at most ${maximum}`);
  if (exclusiveMaximum !== undefined) texts.push(`below ${exclusiveMaximum}`);
  return texts.length === 0 ? '' : ` ${texts.join(' and ')}`;
}

/** One step into a structure: a key of an object or an index of a list. */
export type Segment = string | number;

/** One thing that is wrong, before it is known where in a file it stands. */
export interface Problem {
  /** From the root of the configuration. */
  readonly at: readonly Segment[];
  /** The problem, to be read after the path: `must be >= 1 (got 0)`. */
  readonly message: string;
  /** The last segment is a key that should not be there. */
  readonly aboutKey?: boolean;
}

/** A place in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The origin of a configuration. */
export interface ConfigOrigin {
  /** As people know it; undefined when the configuration was given in code. */
  readonly file: string | undefined;
  locate(at: readonly Segment[], aboutKey?: boolean): Position | undefined;
  /** The place at which a part was written, when items of lists have moved since; default: where it is. */
  writtenAt?(at: readonly Segment[]): readonly Segment[];
}

/** A configuration that was given in code. */
export const IN_CODE: ConfigOrigin = { file: undefined, locate: () => undefined };

/** `scheduler.plugins[1].options.every` */
export function pathText(at: readonly Segment[]): string {
  let text = '';
  for (const segment of at) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text === '' ? 'the configuration' : text;
}

/** One line: `cluster.yaml:4:14: scheduler.allowedFailures must be >= 0 (got -1)`. */
export function problemLine({ at: now, message, aboutKey }: Problem, origin: ConfigOrigin): string {
  const at = origin.writtenAt?.(now) ?? now;
  const position = origin.locate(at, aboutKey);
  const place =
    position === undefined ? origin.file : `${origin.file}:${position.line}:${position.column}`;
  return `${place === undefined ? '' : `${place}: `}${pathText(at)} ${message}`;
}

/** All problems in one error, one line each; `data.problems` has them as fields. */
export function configError(unordered: readonly Problem[], origin: ConfigOrigin): YardmasterError {
  const problems = inFileOrder(unordered, origin);
  const lines = problems.map((problem) => problemLine(problem, origin));
  const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
  return new YardmasterError(
    'ERR_CONFIG',
    `the configuration has ${count}:\n${lines.map((line) => `  ${line}`).join('\n')}`,
    {
      problems: problems.map((problem, index) => ({
        path: pathText(origin.writtenAt?.(problem.at) ?? problem.at),
        message: problem.message,
        line: lines[index],
      })),
    },
  );
}

function inFileOrder(problems: readonly Problem[], origin: ConfigOrigin): readonly Problem[] {
  const placed = problems.map((problem) => ({
    problem,
    place: origin.locate(origin.writtenAt?.(problem.at) ?? problem.at, problem.aboutKey) ?? {
      line: 0,
      column: 0,
    },
  }));
  placed.sort((a, b) => a.place.line - b.place.line || a.place.column - b.place.column);
  return placed.map(({ problem }) => problem);
}

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
