/**
 * The one check of everything that people write: configurations, options of extensions, options of calls in code, parameters
 * of commands, and flags. Rules are JSON schemas of the keywords that {@link Schema} lists, with a few of our own; one walk
 * fills in defaults, turns units into numbers, and finds every problem.
 */
import { type ErrorCode, YardmasterError } from '../api/errors.ts';
import type { BucketSpec } from '../messages/protocol.ts';
import { parseBytes, parseDurationMs, parseShareOrBytes } from '../util/units.ts';
import { isPlainObject } from '../util/values.ts';
import { hint, show } from './words.ts';

/** The types that a rule can name: those of JSON schema, and functions. */
const TYPES = {
  string: { words: 'text', fits: (v: unknown) => typeof v === 'string' },
  number: { words: 'a number', fits: (v: unknown) => typeof v === 'number' && !Number.isNaN(v) },
  integer: { words: 'a whole number', fits: Number.isSafeInteger },
  boolean: { words: 'true or false', fits: (v: unknown) => typeof v === 'boolean' },
  array: { words: 'a list', fits: Array.isArray },
  object: { words: 'an object', fits: isObject },
  function: { words: 'a function', fits: (v: unknown) => typeof v === 'function' },
  null: { words: 'null', fits: (v: unknown) => v === null },
} as const satisfies Record<string, { words: string; fits: (value: unknown) => boolean }>;

type TypeName = keyof typeof TYPES;

/** The units of quantities that are written with their unit, and arrive as numbers. */
const UNITS = {
  ms: { words: 'a time such as "2s" or "100 ms"', read: parseDurationMs },
  s: {
    words: 'a time such as "2s" or "100 ms"',
    read: (value: unknown) => {
      const ms = parseDurationMs(value);
      return ms === undefined ? undefined : ms / 1000;
    },
  },
  bytes: { words: 'a size such as "64 MiB" or "50MB"', read: parseBytes },
  share: { words: 'a share such as "80%", or a size such as "4 GiB"', read: parseShareOrBytes },
} as const;

/** The keywords of a rule. Those above the line are JSON schema's, those below are our own. */
export interface Schema {
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly type?: TypeName | readonly TypeName[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  /** At the root of a rule unknown names are refused unless this allows them. */
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: Schema;
  // ------------------------------------------------------------------------------------------
  /** The value may be written with a unit, and arrives in this one; `share`: a share up to 1, or bytes. */
  readonly unit?: keyof typeof UNITS;
  /** `inf` is allowed, and null means it. */
  readonly infinite?: boolean;
  /** The value names an extension; in code it may be the thing itself, which stays the same object. */
  readonly extension?: boolean;
  /** Values above 0 and below `minimum` are allowed, and noted with the advice. */
  readonly advised?: { readonly minimum: number; readonly advice: string };
  /** A name, or an extension given in code, alone stands for an object with it as this property. */
  readonly alone?: string;
  /** `false` is allowed, and means this. */
  readonly whenFalse?: unknown;
  /** The value is a `Uint8Array`. */
  readonly bytes?: boolean;
  /** The value is an object with these methods, of whatever class. */
  readonly methods?: readonly string[];
  /** Stands after "must be" in messages, where the keywords do not say it well. */
  readonly wanted?: string;
}

type Holds =
  'rule' | 'rule-or-flag' | 'rules' | 'named' | 'types' | 'pattern' | 'unit' | 'any' | TypeName;
/** The value of each keyword: one rule, several, rules by name, or a plain value. */
const KEYWORDS: Readonly<Record<keyof Schema, Holds>> = {
  ...{ title: 'string', description: 'string', default: 'any', examples: 'array' },
  ...{ type: 'types', enum: 'array', const: 'any', pattern: 'pattern', multipleOf: 'number' },
  ...{ minimum: 'number', maximum: 'number' },
  ...{ exclusiveMinimum: 'number', exclusiveMaximum: 'number' },
  ...{ minLength: 'integer', maxLength: 'integer', minItems: 'integer', maxItems: 'integer' },
  ...{ items: 'rule', uniqueItems: 'boolean', properties: 'named', required: 'array' },
  ...{ additionalProperties: 'rule-or-flag', not: 'rule' },
  ...{ anyOf: 'rules', oneOf: 'rules', allOf: 'rules' },
  ...{ unit: 'unit', infinite: 'boolean', extension: 'boolean', bytes: 'boolean' },
  ...{ methods: 'array', wanted: 'string', advised: 'object', alone: 'string', whenFalse: 'any' },
};
/** Keywords that mean nothing for the check. */
const IGNORED = ['$schema', '$id', '$comment', 'deprecated', 'readOnly', 'writeOnly'];

/** One step into a structure: a key of an object or an index of a list. */
export type Segment = string | number;

/** One thing that is wrong. */
export interface Problem {
  /** From the root of what was checked. */
  readonly at: readonly Segment[];
  /** Stands after the path: `must be a whole number of at least 1 (got 0)`. */
  readonly message: string;
  /** The last segment is a key that should not be there. */
  readonly aboutKey?: boolean;
}

/** A value with defaults and base units, and what is wrong with it. */
export interface Checked {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Values that are allowed, and that the writer hardly means. */
  readonly notes: readonly Problem[];
}

/**
 * Fills in defaults, turns units into numbers, and finds every problem at once. Parts without rules stay the same objects.
 * O(size of what has rules).
 * @param at - the place of the value in the whole, for the problems
 * @param form - `written`: null means "not given" where the rule does not name it; `code`: null is a value
 */
export function check(
  schema: object,
  value: unknown,
  at: readonly Segment[] = [],
  form: 'written' | 'code' = 'written',
): Checked {
  return checkBy(ruleOf(schema), value, at, form);
}

function checkBy(
  rule: Rule,
  value: unknown,
  at: readonly Segment[],
  form: 'written' | 'code',
): Checked {
  const walk = new Walk([...at], form === 'code');
  const checked = walk.visit(rule, value, 'root');
  if (checked === undefined) walk.refuse(rule, value);
  return { value: checked, problems: walk.problems, notes: walk.notes };
}

/** A rule for each option of a call. A new option of the type has to be listed to compile. */
export type Rules<Options> = Readonly<Record<keyof Options, Schema>>;

/**
 * Checks the options of a call in code. An option that is undefined counts as not given.
 * @param call - as it is written: `LocalCluster.start`
 * @returns the options with the defaults of the rules
 * @throws YardmasterError with every problem
 */
export function checkCall<Options extends object>(
  call: string,
  options: Options,
  rules: Rules<Options>,
  code: ErrorCode = 'ERR_CONFIG',
): Options {
  // Instances of classes are read as objects with options, too.
  const given: unknown = isObject(options) && !isPlainObject(options) ? { ...options } : options;
  const { value, problems } = checkBy(ruleOfCall(rules), given, [], 'code');
  refuse(call, problems, code, { call });
  return value as Options;
}

/**
 * Throws what is wrong with options or parameters in one line: `Client.connect: name must be text (got 5)`.
 * @param subject - the call or command that they are for
 * @throws YardmasterError when there are problems
 */
export function refuse(
  subject: string,
  problems: readonly Problem[],
  code: ErrorCode,
  data: Readonly<Record<string, unknown>>,
): void {
  const [first] = problems;
  if (first === undefined) return;
  const texts = problems.map(({ at, message }) => `${pathText(at, 'its argument')} ${message}`);
  throw new YardmasterError(code, `${subject}: ${texts.join('; ')}`, {
    ...data,
    option: pathText(first.at, ''),
    problems: texts,
  });
}

/** `scheduler.plugins[1].options.every` */
export function pathText(at: readonly Segment[], root = 'the configuration'): string {
  let text = '';
  for (const segment of at) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text === '' ? root : text;
}

const rulesOfSchemas = new WeakMap<object, Rule>();
const rulesOfCalls = new WeakMap<object, Rule>();

function ruleOf(schema: Schema): Rule {
  let rule = rulesOfSchemas.get(schema);
  if (rule === undefined) rulesOfSchemas.set(schema, (rule = new Rule(schema)));
  return rule;
}

function ruleOfCall(properties: Readonly<Record<string, Schema>>): Rule {
  let rule = rulesOfCalls.get(properties);
  if (rule === undefined) {
    rulesOfCalls.set(properties, (rule = new Rule({ type: 'object', properties })));
  }
  return rule;
}

/** Has the schema before the fields of a rule are found from it. */
class RuleSource {
  constructor(readonly schema: Schema) {}
}

/**
 * A schema as the walk reads it. Each call of a client has its options checked: with every keyword in its place in one kind of
 * object, and what follows from keywords found once, `client.with` of a limit and a signal takes 6.1 µs instead of 7.2.
 */
class Rule extends RuleSource {
  readonly unit = this.schema.unit;
  readonly alone = this.schema.alone;
  readonly whenFalse = this.schema.whenFalse;
  readonly default = this.schema.default;
  readonly isInfinite = this.schema.infinite === true;
  readonly isExtension = this.schema.extension === true;
  readonly isBytes = this.schema.bytes === true;
  readonly methods = this.schema.methods;
  /** The value fits one of these; undefined: any type is right. */
  readonly types = this.schema.type && typesOf(this.schema.type).map((name) => TYPES[name].fits);
  readonly words = this.schema.enum;
  readonly isConst = 'const' in this.schema;
  readonly const = this.schema.const;
  readonly pattern =
    this.schema.pattern === undefined ? undefined : new RegExp(this.schema.pattern, 'u');
  readonly items = this.schema.items && ruleOf(this.schema.items);
  readonly fields = new Map(
    Object.entries(this.schema.properties ?? {}).map(([name, part]) => [name, ruleOf(part)]),
  );
  /** The properties that are there when they are not given. Calls with few of many options are many. */
  readonly namesWithDefault = [...this.fields.keys()].filter(
    (name) => this.fields.get(name)?.default !== undefined,
  );
  readonly required = this.schema.required ?? [];
  readonly additional = this.schema.additionalProperties;
  readonly rest: Rule | undefined =
    typeof this.additional === 'object' ? ruleOf(this.additional) : undefined;
  readonly hasFields =
    this.schema.properties !== undefined ||
    typeof this.additional === 'object' ||
    this.schema.required !== undefined;
  readonly allOf = (this.schema.allOf ?? []).map(ruleOf);
  readonly alternatives = (this.schema.anyOf ?? this.schema.oneOf)?.map(ruleOf);
  readonly isOneOf = this.schema.oneOf !== undefined;
  readonly not = this.schema.not && ruleOf(this.schema.not);
}

/** One walk through a value and its rule. */
class Walk {
  problems: Problem[] = [];
  readonly notes: Problem[] = [];

  /** @param at - the present place; it is changed in place, and copied for problems */
  constructor(
    private readonly at: Segment[],
    private readonly isCode: boolean,
  ) {}

  /** @returns the checked value; undefined when nothing is given and there is no default */
  visit(rule: Rule, given: unknown, place?: 'root'): unknown {
    const meant = given === false && rule.whenFalse !== undefined ? rule.whenFalse : given;
    if (rule.unit !== undefined) return this.visitQuantity(rule, rule.unit, meant);
    let value = meant;
    if (rule.alone !== undefined && (typeof value === 'string' || isExtension(value))) {
      value = { [rule.alone]: value };
    }
    if (value === null && !this.isCode && !fits(rule, null)) {
      value = rule.isInfinite ? Infinity : undefined;
    }
    if (value === undefined) value = rule.default;
    if (value === undefined) return undefined;
    if (!fits(rule, value)) {
      this.refuse(rule, value);
      return value;
    }
    const { items } = rule;
    if (items !== undefined && Array.isArray(value)) value = this.visitItems(items, value);
    else if ((place === 'root' || rule.hasFields) && isPlainObject(value)) {
      value = this.visitFields(rule, value, place);
    }
    return this.visitAlternatives(rule, value);
  }

  refuse({ schema }: Rule, value: unknown): void {
    const what = allowedBy(schema) ?? (value === undefined ? 'given' : 'one of several forms');
    const isWord = schema.enum !== undefined && typeof value === 'string';
    const near = isWord ? hint(value, schema.enum.map(String)) : '';
    this.add(`must be ${what} (got ${show(value)})${near}`);
  }

  private advise(rule: Rule, quantity: number, written: unknown): void {
    const { advised } = rule.schema;
    if (advised === undefined || quantity <= 0 || quantity >= advised.minimum) return;
    const message = `is of little use ${advised.advice} (got ${show(written)})`;
    this.notes.push({ at: [...this.at], message });
  }

  private add(message: string, key?: string): void {
    const at = key === undefined ? [...this.at] : [...this.at, key];
    this.problems.push(key === undefined ? { at, message } : { at, message, aboutKey: true });
  }

  private visitQuantity(rule: Rule, unit: keyof typeof UNITS, given: unknown): unknown {
    const value = given ?? (given === null && rule.isInfinite ? Infinity : rule.default);
    if (value === undefined) return undefined;
    const quantity = UNITS[unit].read(value);
    if (quantity === undefined || (quantity === Infinity && !rule.isInfinite)) {
      this.refuse(rule, value);
    } else if (!isWithin(rule.schema, quantity)) this.refuse(rule, value);
    else this.advise(rule, quantity, value);
    return quantity;
  }

  private visitItems(rule: Rule, list: readonly unknown[]): unknown[] {
    return list.map((item, index) => {
      this.at.push(index);
      const checked = this.visit(rule, item);
      if (checked === undefined) this.refuse(rule, item);
      this.at.pop();
      return checked;
    });
  }

  private visitFields(
    rule: Rule,
    value: Readonly<Record<string, unknown>>,
    place: 'root' | undefined,
  ): Record<string, unknown> {
    const checked: Record<string, unknown> = {};
    const { fields, additional } = rule;
    const given = Object.keys(value);
    // Of the many options of a call few are given. A configuration is read in the order of its rules.
    if (this.isCode) {
      for (const key of given) this.visitField(fields.get(key), value, key, checked);
    }
    for (const key of this.isCode ? rule.namesWithDefault : fields.keys()) {
      if (!Object.hasOwn(checked, key)) this.visitField(fields.get(key), value, key, checked);
    }
    const isClosed =
      additional === false ||
      (place === 'root' && rule.schema.type === 'object' && additional === undefined);
    for (const key of given) {
      if (fields.has(key)) continue;
      if (!isClosed) this.visitField(rule.rest ?? ruleOf(ANY), value, key, checked);
      else if (value[key] !== undefined) {
        this.add(`is not known${nearestOf(key, [...fields.keys()])}`, key);
      }
    }
    for (const key of rule.required) {
      if (Object.hasOwn(checked, key)) continue;
      this.at.push(key);
      this.refuse(fields.get(key) ?? ruleOf(ANY), undefined);
      this.at.pop();
    }
    return checked;
  }

  private visitField(
    rule: Rule | undefined,
    value: Readonly<Record<string, unknown>>,
    key: string,
    checked: Record<string, unknown>,
  ): void {
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    // Most options are not given, and have no default.
    if (rule === undefined || (given === undefined && rule.default === undefined)) return;
    this.at.push(key);
    const item = this.visit(rule, given);
    this.at.pop();
    if (item === undefined) return;
    if (key === '__proto__') setOwn(checked, key, item);
    else checked[key] = item;
  }

  private visitAlternatives(rule: Rule, given: unknown): unknown {
    let value = given;
    for (const part of rule.allOf) value = this.visit(part, value);
    const { alternatives, not } = rule;
    if (alternatives !== undefined) value = this.visitOneOf(rule, alternatives, value);
    if (not !== undefined && this.attempt(not, value).problems.length === 0) {
      this.add(`cannot be set. ${rule.schema.description ?? ''}`.trimEnd());
    }
    return value;
  }

  private visitOneOf(rule: Rule, alternatives: readonly Rule[], given: unknown): unknown {
    const attempts: (Attempt | undefined)[] = [];
    let right: Attempt | undefined;
    let rightCount = 0;
    for (const alternative of alternatives) {
      const attempt = isOtherForm(alternative, given)
        ? undefined
        : this.attempt(alternative, given);
      attempts.push(attempt);
      if (attempt?.problems.length !== 0) continue;
      right ??= attempt;
      rightCount++;
      // Any other says the same.
      if (!rule.isOneOf) break;
    }
    if (right !== undefined && rightCount === 1) return right.value;
    // The problems of the one alternative that the value has the form of say more than a list of all.
    const fitting = alternatives.flatMap((alternative, index) =>
      fits(alternative, given) ? [{ alternative, attempt: attempts[index] }] : [],
    );
    const whole = fitting.filter(({ alternative }) => hasRequired(alternative, given));
    const meant = whole.length > 0 ? whole : fitting;
    if (rightCount === 0 && meant.length === 1) {
      this.problems.push(...(meant[0]?.attempt?.problems ?? []));
    } else this.refuse(rule, given);
    return given;
  }

  private attempt(rule: Rule, given: unknown): Attempt {
    const before = this.problems;
    this.problems = [];
    const value = this.visit(rule, given);
    const { problems } = this;
    this.problems = before;
    return { value, problems };
  }
}

type Attempt = Omit<Checked, 'notes'>;

/** True when a rule refuses a value for what it is, whatever its parts are: no problem need be written down to know that. */
function isOtherForm(rule: Rule, value: unknown): boolean {
  const { unit, alone, whenFalse } = rule;
  if (unit !== undefined || alone !== undefined || whenFalse !== undefined) return false;
  return value !== null && value !== undefined && !fits(rule, value);
}

/** Assignment would change the prototype. */
function setOwn(target: object, key: string, value: unknown): void {
  const rest = { enumerable: true, configurable: true, writable: true };
  Object.defineProperty(target, key, { value, ...rest });
}

function hasRequired({ required }: Rule, value: unknown): boolean {
  return required.length > 0 && required.every((name) => Object.hasOwn(value as object, name));
}

/** The nearest known name, or else all of them. */
function nearestOf(key: string, known: readonly string[]): string {
  const near = hint(key, known);
  if (near !== '') return near;
  return known.length === 0 ? '; there are none' : `; there are ${known.join(', ')}`;
}

/** True when a value is right but for its parts. */
function fits(rule: Rule, value: unknown): boolean {
  const { types, words, methods, alternatives } = rule;
  if (value === null && alternatives !== undefined) {
    return alternatives.some((alternative) => fits(alternative, null));
  }
  if (rule.isExtension) {
    return typeof value === 'string'
      ? value !== ''
      : typeof value === 'function' || isObject(value);
  }
  if (rule.isBytes) return value instanceof Uint8Array;
  if (methods !== undefined) return hasMethods(value, methods);
  if (types !== undefined && !types.some((isOf) => isOf(value))) {
    return value === Infinity && rule.isInfinite;
  }
  if (words !== undefined && !words.includes(value)) return false;
  if (rule.isConst && rule.const !== value) return false;
  const { schema } = rule;
  if (typeof value === 'number') return isWithin(schema, value);
  if (typeof value === 'string') {
    return (
      isWithinLength(value.length, schema.minLength, schema.maxLength) &&
      (rule.pattern === undefined || rule.pattern.test(value))
    );
  }
  if (!Array.isArray(value)) return true;
  return (
    isWithinLength(value.length, schema.minItems, schema.maxItems) &&
    (schema.uniqueItems !== true ||
      new Set(value.map((v) => JSON.stringify(v))).size === value.length)
  );
}

function isObject(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value)
  );
}

function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (!isObject(value)) return false;
  return methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
}

function isWithin(schema: Schema, value: number): boolean {
  const { minimum = -Infinity, maximum = Infinity, multipleOf } = schema;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  return (
    value >= minimum &&
    value <= maximum &&
    (above === undefined || value > above) &&
    (below === undefined || value < below) &&
    (multipleOf === undefined || isNearlyWhole(value / multipleOf))
  );
}

/** 0.3 / 0.1 is not quite 3. */
function isNearlyWhole(quotient: number): boolean {
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

function isWithinLength(length: number, least = 0, most = Infinity): boolean {
  return length >= least && length <= most;
}

/** True when a value is an extension itself: a class, an instance, or a definition. */
export function isExtension(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (!isObject(value)) return false;
  if (!isPlainObject(value)) return true;
  try {
    if ('use' in value) return false;
    const parts = Object.values(value);
    return typeof value['kind'] === 'string' || parts.some((part) => typeof part === 'function');
  } catch {
    return true; // It throws when it is read, which nothing that was written in a configuration does.
  }
}

/** The values that a rule allows in words: `a number above 0`; undefined when it says too much for that. */
export function allowedBy(schema: Schema): string | undefined {
  const words = allowedValues(schema);
  return words === undefined || schema.whenFalse === undefined ? words : `${words}, or false`;
}

function allowedValues(schema: Schema): string | undefined {
  const { wanted, unit, enum: words, extension, methods } = schema;
  if (wanted !== undefined) return wanted;
  if (unit !== undefined) {
    const bounds = schema.minimum === 0 ? { ...schema, minimum: undefined } : schema;
    return `${UNITS[unit].words}${limitsOf(bounds, unit === 'share' ? '' : ` ${unit}`)}${schema.infinite === true ? ', or inf' : ''}`;
  }
  if (extension === true) return 'a name, a path or a package';
  if (schema.bytes === true) return 'bytes';
  if (methods !== undefined) return `an object with ${methods.join(' and ')}`;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) {
    const texts = alternatives.map(allowedBy);
    return texts.includes(undefined) ? undefined : texts.join(' or ');
  }
  if ('const' in schema) return show(schema.const);
  if (words !== undefined) return `one of ${words.map(String).join(', ')}`;
  if (schema.type === undefined) return undefined;
  const names = typesOf(schema.type).filter((name) => name !== 'null');
  const texts = names.map((name) => TYPES[name].words + limitsOfType(name, schema));
  return texts.join(' or ') + (schema.infinite === true ? ', or inf' : '');
}

function limitsOfType(type: TypeName, schema: Schema): string {
  if (type === 'number' || type === 'integer') return limitsOf(schema, '');
  if (type === 'array') return lengthText(schema.minItems, schema.maxItems, 'items');
  if (type !== 'string') return '';
  const { pattern } = schema;
  const length = lengthText(schema.minLength, schema.maxLength, 'characters');
  if (pattern === undefined) return length;
  const example = schema.examples?.[0] ?? schema.default;
  const like = typeof example === 'string' ? `, as ${show(example)} does` : '';
  return `${length} that matches ${pattern}${like}`;
}

function limitsOf(schema: Schema, unit: string): string {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema;
  const isBounded = (bound?: number): bound is number =>
    bound !== undefined && Math.abs(bound) !== Number.MAX_VALUE;
  const texts: string[] = [];
  if (above !== undefined) texts.push(`above ${above}${unit}`);
  if (below !== undefined) texts.push(`below ${below}${unit}`);
  if (isBounded(minimum) && isBounded(maximum)) {
    texts.push(`from ${minimum} to ${maximum}${unit}`);
  } else if (isBounded(minimum)) texts.push(`of at least ${minimum}${unit}`);
  else if (isBounded(maximum)) texts.push(`of at most ${maximum}${unit}`);
  if (maximum === Number.MAX_VALUE) texts.push('finite');
  if (multipleOf !== undefined) texts.push(`divisible by ${multipleOf}`);
  return texts.length === 0 ? '' : ` ${texts.join(' and ')}`;
}

function lengthText(least: number | undefined, most: number | undefined, of: string): string {
  if (least === 1 && most === undefined) return ' that is not empty';
  if (least === undefined && most === undefined) return '';
  return ` of ${least ?? 0} to ${most ?? 'any number of'} ${of}`;
}

function typesOf(type: TypeName | readonly TypeName[]): readonly TypeName[] {
  return typeof type === 'string' ? [type] : type;
}

/**
 * Finds a mistake in a rule that comes from outside of this package.
 * @returns the mistake, or undefined
 */
export function mistakeIn(schema: unknown, at: readonly Segment[] = []): string | undefined {
  if (!isPlainObject(schema))
    return `${pathText(at, 'it')} must be an object (got ${show(schema)})`;
  for (const [keyword, value] of Object.entries(schema)) {
    const place = [...at, keyword];
    const kind = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword as keyof Schema] : undefined;
    if (kind === undefined) {
      if (IGNORED.includes(keyword)) continue;
      return `${pathText(place)} is not a known keyword${nearestOf(keyword, Object.keys(KEYWORDS))}`;
    }
    const mistake = mistakeInValue(kind, value, place);
    if (mistake !== undefined) return mistake;
  }
  return undefined;
}

function mistakeInValue(holds: Holds, value: unknown, at: readonly Segment[]): string | undefined {
  if (holds === 'any') return undefined;
  if (holds === 'rule-or-flag' && typeof value === 'boolean') return undefined;
  if (holds === 'rule' || holds === 'rule-or-flag') return mistakeIn(value, at);
  if (holds === 'rules' || holds === 'named') {
    const rule = holds === 'named' ? FIELDS : LIST;
    if (!fits(ruleOf(rule), value)) return notAllowed(rule, value, at);
    const parts = Object.entries(value as Readonly<Record<string, unknown>>);
    return parts
      .map(([name, part]) => mistakeIn(part, [...at, name]))
      .find((mistake) => mistake !== undefined);
  }
  if (holds === 'types') {
    const rule = oneOf(...Object.keys(TYPES));
    const wrong = [value].flat().find((name) => !fits(ruleOf(rule), name));
    return wrong === undefined ? undefined : notAllowed(rule, wrong, at);
  }
  if (holds === 'pattern') {
    try {
      new RegExp(String(value), 'u');
      return undefined;
    } catch (error) {
      return `${pathText(at)}: ${(error as Error).message}`;
    }
  }
  const rule = holds === 'unit' ? oneOf(...Object.keys(UNITS)) : { type: holds };
  return fits(ruleOf(rule), value) ? undefined : notAllowed(rule, value, at);
}

function notAllowed(rule: Schema, value: unknown, at: readonly Segment[]): string {
  return `${pathText(at)} must be ${allowedBy(rule)} (got ${show(value)})`;
}

// Rules of options of calls in code.

export const ANY: Schema = {};
export const FLAG: Schema = { type: 'boolean' };
export const TEXT: Schema = { type: 'string', minLength: 1 };
export const LIST: Schema = { type: 'array' };
export const FIELDS: Schema = { type: 'object' };
export const FUNCTION: Schema = { type: 'function' };
export const SIZE: Schema = {
  type: 'number',
  minimum: 0,
  maximum: Number.MAX_VALUE,
  wanted: 'a number of bytes, at least 0, where 0 means unlimited',
};
export const DURATION: Schema = {
  type: 'number',
  minimum: 0,
  wanted: 'a number of milliseconds, at least 0, or Infinity',
};
export const CLOCK: Schema = { methods: ['nowMs', 'setTimer'] };
export const LOG: Schema = { methods: ['info', 'warn', 'error'] };

/** One of the forms of a store of results: an object that is known by its first field. */
const storeForm = (properties: Readonly<Record<string, Schema>>): Schema => ({
  ...{ type: 'object', additionalProperties: false, properties },
  required: Object.keys(properties).slice(0, 1),
});
const MODULE = 'the path, URL or name of a module, because each thread of a worker loads it';
const BUCKET: Rules<BucketSpec> = {
  ...{ bucket: TEXT, prefix: { type: 'string' }, region: { type: 'string' } },
  ...{ endpoint: { type: 'string' }, forcePathStyle: FLAG },
};
export const RESULT_STORE: Schema = {
  anyOf: [
    TEXT,
    storeForm({ folder: TEXT, maxBytes: { type: 'integer', minimum: 1 } }),
    storeForm({ s3: storeForm(BUCKET) }),
    storeForm({ use: { ...TEXT, wanted: MODULE }, options: FIELDS }),
  ],
  wanted: `the path of a folder, { folder }, { s3: { bucket } }, or { use } with ${MODULE}`,
};

export function wholeNumber(least: number): Schema {
  return { type: 'integer', minimum: least };
}

export function oneOf(...values: readonly string[]): Schema {
  return { enum: values };
}

export function either(...rules: readonly Schema[]): Schema {
  return { anyOf: rules };
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it cannot be published: topics are a list of text, and there is a message */
export function checkTopics(topics: unknown, message: unknown): void {
  const areTopics = Array.isArray(topics) && topics.every((each) => typeof each === 'string');
  if (areTopics && message !== undefined) return;
  const got = areTopics ? 'no message' : `the topics ${show(topics)}`;
  const what = `logEvent wants a list of topics and a message, got ${got}`;
  throw new YardmasterError('ERR_GRAPH_INVALID', what);
}
