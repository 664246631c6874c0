import { move } from 'piscina';
import { taskOf } from '../../adapters/tasks/index.ts';

/** Numbers, which are written once. */
export function makeNumbers(nbytes: number): Float64Array {
  return new Float64Array(nbytes / 8).fill(1);
}

/** The same in memory that threads share. */
export function makeSharedNumbers(nbytes: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(nbytes)).fill(1);
}

/** The same for piscina, which moves them to the thread of the program. */
export function makeMovedNumbers(nbytes: number): unknown {
  return move(makeNumbers(nbytes));
}

/** Reads all of them. @param reader - so that two calls are not one task */
export function readNumbers(numbers: Float64Array, reader = 0): number {
  let total = reader;
  for (let index = 0; index < numbers.length; index++) total += numbers[index] as number;
  return total;
}

/** As a task. */
export const make = taskOf(import.meta.url, makeNumbers);
/** As a task. */
export const makeShared = taskOf(import.meta.url, makeSharedNumbers);
/** As a task. */
export const read = taskOf(import.meta.url, readNumbers);
