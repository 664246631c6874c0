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
 * What only its sender knows: at least 128 random bits as text.
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
 * How many copies there are to be of a result, at least 1. Infinity: one on every running worker.
 * @minimum 1
 */
export type Copies = number;

/**
 * A time or another bound, at least 0; may be Infinity. Never part of a sum.
 * @minimum 0
 */
export type Limit = number;

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
 * Where a task may run: addresses, host names or names of workers. Each is looked up while the task is taken in.
 * @maxItems 10000
 */
export type Places = readonly string[];

/**
 * Amounts of resources by name. Each name is kept for every worker and task.
 * @maxProperties 1000
 */
export type Resources = Readonly<Record<string, Size>>;
