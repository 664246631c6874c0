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
 */
export type Integer = number;

/**
 * A whole number, at least 0.
 * @integer
 * @minimum 0
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
 * A number, at least 0; may be Infinity.
 * @minimum 0
 */
export type Amount = number;

/**
 * A number that is not NaN, Infinity or -Infinity.
 * @finite
 */
export type Finite = number;

/**
 * A finite number, at least 0: sums of sizes remain numbers.
 * @finite
 * @minimum 0
 */
export type Size = number;
