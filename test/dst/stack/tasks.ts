import { defineTasks } from '../../../adapters/app/index.ts';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { evaluate } from '../swarm.ts';

let clock: VirtualClock | undefined;

/** Tasks take their time by this clock. */
export function runBy(next: VirtualClock | undefined): void {
  clock = next;
}

export const { mix, fail } = defineTasks(import.meta.url, {
  /** A value that depends on its key and on all inputs, after some virtual time. */
  mix: async (key: string, durationMs: number, inputs: readonly number[]): Promise<number> => {
    await passed(durationMs);
    return evaluate(key, inputs);
  },
  fail: async (key: string, durationMs: number): Promise<number> => {
    await passed(durationMs);
    throw new RangeError(`${key} was to fail`);
  },
});

function passed(durationMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (clock === undefined || durationMs === 0) resolve();
    else clock.setTimer(durationMs, resolve);
  });
}
