import { taskOf } from '../../adapters/tasks/index.ts';

/** Bytes that contain their seed. */
export function makeBlock(seed: number, nbytes: number): Uint8Array {
  return new Uint8Array(nbytes).fill(seed % 251);
}

/** Sum of all bytes. */
export function addUpBlock(bytes: Uint8Array): number {
  let total = 0;
  for (const byte of bytes) total += byte;
  return total;
}

/** Sum of the bytes of two, which may have come from different workers. */
export function addUpTwo(left: Uint8Array, right: Uint8Array): number {
  return addUpBlock(left) + addUpBlock(right);
}

/** Reads next to nothing. */
export function lengthOfBlock(bytes: Uint8Array): number {
  return bytes.length;
}

/** Sum of numbers. */
export function addUpNumbers(...parts: number[]): number {
  return parts.reduce((total, part) => total + part, 0);
}

/** Of the process of the worker. */
export function ownProcessId(): number {
  return process.pid;
}

/** As a task. */
export const processId = taskOf(import.meta.url, ownProcessId);
/** As a task. */
export const block = taskOf(import.meta.url, makeBlock);
/** As a task. */
export const addUp = taskOf(import.meta.url, addUpBlock);
/** As a task. */
export const total = taskOf(import.meta.url, addUpNumbers);
/** As a task. */
export const lengthOf = taskOf(import.meta.url, lengthOfBlock);
/** As a task. */
export const addUpBoth = taskOf(import.meta.url, addUpTwo);
