/** Functions for the tests of the client. Workers import this module. */
import { setTimeout as sleep } from 'node:timers/promises';
import { currentTask, defineTasks } from '../../../adapters/tasks/index.ts';

/** Calls so far, by label: how often something really ran in this process. */
export const calls = new Map<string, number>();

/** Ends the runs of `deaf` that are under way, by label. */
export const gates = new Map<string, () => void>();

export const {
  inc,
  add,
  total,
  concat,
  nothing,
  describe,
  fail,
  throwText,
  giveFunction,
  flaky,
  failOdd,
  functionOfOdd,
  slow,
  never,
  deaf,
  count,
  bytes,
} = defineTasks(import.meta.url, {
  inc: (x: number) => x + 1,
  add: (x: number, y: number) => x + y,
  total: (numbers: readonly number[]) => numbers.reduce((sum, x) => sum + x, 0),
  concat: (left: string, right: string) => left + right,
  nothing: () => undefined,
  describe: (order: { readonly name: string; readonly amounts: Map<string, number> }) =>
    `${order.name}: ${[...order.amounts].join(' ')}`,
  fail(message: string): number {
    throw Object.assign(new RangeError(message, { cause: new Error('the deeper reason') }), {
      code: 'E_TEST',
      shelf: 7,
    });
  },
  throwText(text: string): number {
    throw text as unknown as Error;
  },
  giveFunction: () => ({ deep: [() => 1] }),
  failOdd(value: number): number {
    if (value % 2 === 1) throw new Error(`${value} is odd`);
    return value;
  },
  functionOfOdd: (value: number) => (value % 2 === 1 ? () => value : value),
  /** Fails until it was called often enough. */
  flaky(label: string, failures: number): number {
    const seen = (calls.get(label) ?? 0) + 1;
    calls.set(label, seen);
    if (seen <= failures) throw new Error(`attempt ${seen} of ${label}`);
    return seen;
  },
  async slow(delayMs: number, value: number): Promise<number> {
    await sleep(delayMs);
    return value;
  },
  /** Runs until it is cancelled. */
  never(label: string): Promise<string> {
    calls.set(label, (calls.get(label) ?? 0) + 1);
    return new Promise((resolve) => {
      currentTask().signal.addEventListener('abort', () => {
        resolve('aborted');
      });
    });
  },
  /** Runs until its gate is opened, and ignores cancellation. */
  deaf(label: string): Promise<string> {
    return new Promise((resolve) => {
      gates.set(label, () => resolve('done'));
    });
  },
  count(label: string): number {
    const seen = (calls.get(label) ?? 0) + 1;
    calls.set(label, seen);
    return seen;
  },
  bytes: (size: number) => new Uint8Array(size),
});
