/**
 * Assertions are for our own bugs and are always on. Errors of the world (input, network, user code)
 * are values or {@link "core/api/errors"} classes instead.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Closes a `switch` over a union: adding a member without a case becomes a compile error. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable case: ${JSON.stringify(value)}`);
}

/** A broken assumption inside Yardmaster itself. */
class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** The kinds of objects that keep the read-only view which extensions see of them. */
export type ShownKind =
  'task' | 'worker' | 'client' | 'group' | 'prefix' | 'cluster' | 'load' | 'theft' | 'manager';

/**
 * The property in which an object keeps its view, or its kind until the view is asked for. Owned by `core/shared/read-only.ts`.
 */
export const SHOWN: unique symbol = Symbol('shown');

/** Arrays up to this length keep their capacity when they are emptied. */
const KEPT_MAX = 64;

/**
 * Empties an array that is going to be filled again. `length = 0` gives up its capacity, which the
 * next `push` has to allocate again; popping keeps it.
 */
export function empty(array: unknown[]): void {
  if (array.length > KEPT_MAX) array.length = 0;
  else while (array.length > 0) array.pop();
}

/** True when a value has a method `then`: promises of other realms and libraries are recognised as well. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** True when a value was written as `{ … }`, in this realm or another. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === Object.prototype || prototype === null) return true;
  return Object.getPrototypeOf(prototype) === null;
}

/** Control characters but for tab and line feed, and marks that change the direction of text. */
const UNPRINTABLE = /[^\P{Cc}\t\n]|[\u202A-\u202E\u2066-\u2069]/gu;

/**
 * Text for a terminal or a log that may contain names and messages of peers: control characters are shown, not
 * obeyed, and no line after the first begins like a line of its own.
 */
export function printable(text: string): string {
  return text
    .replace(UNPRINTABLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replace(/\n(?=\S)/g, '\n    ');
}

/** As {@link printable}, for text whose lines are its own. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Made once: creating a formatter takes longer than formatting. */
const NUMBERS = new Intl.NumberFormat('en');

/** `1 worker`, `1,200 workers`. A verb may follow the noun: `countOf(n, 'task waits', 'tasks wait')`. */
export function countOf(amount: number, one: string, many = `${one}s`): string {
  return `${numberText(amount)} ${amount === 1 ? one : many}`;
}

/** A number for people: `21,028`. */
export function numberText(amount: number): string {
  return NUMBERS.format(amount);
}

/** `3 of 4`, or `3` when there may be any number. */
export function outOf(amount: number, max: number): string {
  return numberText(amount) + (max === Infinity ? '' : ` of ${numberText(max)}`);
}

/** The name of the type of a value for people: `number`, `Array`, `Map`, the name of its class. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null) return 'Object';
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  const name: unknown = typeof maker === 'function' ? maker.name : '';
  return typeof name === 'string' && name !== '' ? wellFormed(name) : 'Object';
}

/** Like tuples in Python: the first difference decides, else the shorter one is smaller. */
export function compareTuples(a: readonly number[], b: readonly number[]): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const difference = (a[index] as number) - (b[index] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** True when both are known and differ. */
export function contradicts(before: string | undefined, now: string | undefined): boolean {
  return before !== undefined && now !== undefined && before !== now;
}

/** True for what has an identity: objects and functions. */
export function isReference(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** Half of a surrogate pair has no form in UTF-8, in which texts are sent. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** The beginning of a text, well-formed, and how much was left out. */
export function cut(text: unknown, lengthMax: number): string {
  const whole = String(text); // A plain program may have set any value.
  if (whole.length <= lengthMax) return wellFormed(whole);
  const rest = whole.length - lengthMax;
  // Joined of characters: a slice keeps all of the text that it is of.
  const beginning = Array.from(wellFormed(whole.slice(0, lengthMax)));
  return [...beginning, `… (${rest} more characters)`].join('');
}

/**
 * Types of values in messages. They document bounds, and the checks of messages that are generated from the
 * types enforce them.
 */

/**
 * A key, a name or an address: never empty.
 * @minLength 1
 */
export type Name = string;

/**
 * A text that only its sender knows: at least 128 random bits.
 * @minLength 22
 */
export type Secret = string;

/**
 * A whole number.
 * @integer
 * @minimum -9007199254740991
 * @maximum 9007199254740991
 */
export type Integer = number;

/**
 * A whole number, at least 0.
 * @integer
 * @minimum 0
 * @maximum 9007199254740991
 */
export type Count = number;

/**
 * A whole number, at least 1.
 * @integer
 * @minimum 1
 * @maximum 9007199254740991
 */
export type Positive = number;

/**
 * The wanted number of copies of a result, at least 1. Infinity: one on every running worker.
 * @minimum 1
 */
export type Copies = number;

/**
 * A time or another bound, at least 0; may be Infinity. Never part of a sum.
 * @minimum 0
 */
export type Limit = number;

/**
 * Milliseconds by which others are divided: from a thousandth to a day.
 * @minimum 0.001
 * @maximum 86400000
 */
export type Interval = number;

/**
 * An amount that is not always whole, at least 1.
 * @minimum 1
 * @maximum 9007199254740991
 */
export type Amount = number;

/**
 * A number whose sums and differences remain numbers: neither NaN nor infinite, nor so large that it has
 * no digit after the decimal point.
 * @minimum -9007199254740991
 * @maximum 9007199254740991
 */
export type Finite = number;

/**
 * A size, a duration or an amount, at least 0: its sums remain numbers.
 * @minimum 0
 * @maximum 9007199254740991
 */
export type Size = number;

/**
 * The places where a task may run: addresses, host names or names of workers. Each is looked up while the task is taken in.
 * @maxItems 10000
 */
export type Places = readonly string[];

/**
 * Amounts of resources by name. Each name is kept for every worker and task.
 * @maxProperties 1000
 */
export type Resources = Readonly<Record<string, Size>>;

/** True when two values are the same, or plain objects or arrays whose members are. Neither may contain itself. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  const [ours, theirs] = [membersOf(a), membersOf(b)];
  if (ours === undefined || theirs === undefined || Array.isArray(a) !== Array.isArray(b))
    return false;
  const keys = Object.keys(ours);
  return (
    keys.length === Object.keys(theirs).length &&
    keys.every((key) => Object.hasOwn(theirs, key) && isEqual(ours[key], theirs[key]))
  );
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isPlainObject(value) || Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

/** Text as it can stand in markup and attributes: names of tasks and texts of errors are data, and never markup. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
