import { defineTasks } from '../../../adapters/app/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { evaluate } from '../swarm.ts';

/** Where tasks run. */
export interface Stage {
  /** Tasks take their time by this clock. */
  readonly clock: VirtualClock;
  /** Called with the key of each run that begins. False: it shall not end, because too much has gone wrong. */
  readonly onRun: (key: string) => boolean;
  /** Called with the key of each run that ends. */
  readonly onRunEnd: (key: string) => void;
}

/** A result: a number, alone or so often that it takes up memory. */
export type Value = number | Float64Array;

let stage: Stage | undefined;

/** Tasks run here from now on. */
export function runOn(next: Stage | undefined): void {
  stage = next;
}

export const { mix, fail } = defineTasks(import.meta.url, {
  /** A value that depends on its key and on all inputs, after some virtual time. */
  mix: async (
    key: string,
    durationMs: number,
    inputs: readonly Value[],
    length: number,
  ): Promise<Value> => {
    await run(key, durationMs);
    const value = evaluate(key, inputs.map(numberOf));
    return length === 0 ? value : new Float64Array(length).fill(value);
  },
  fail: async (key: string, durationMs: number): Promise<Value> => {
    await run(key, durationMs);
    throw new RangeError(`${key} was to fail`);
  },
});

/** The number that a result stands for; not a number when a part of it was changed. */
export function numberOf(value: Value): number {
  if (typeof value === 'number') return value;
  const [first = Number.NaN] = value;
  return value.every((each) => each === first) ? first : Number.NaN;
}

async function run(key: string, durationMs: number): Promise<void> {
  const mayEnd = stage?.onRun(key) ?? true;
  if (!mayEnd) await new Promise(() => undefined);
  await passed(durationMs);
  stage?.onRunEnd(key);
}

function passed(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (stage === undefined || durationMs === 0) resolve();
    else stage.clock.setTimer(durationMs, resolve);
  });
}
