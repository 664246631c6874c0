/** What a row of the suite is, and what rows are made with. */
import type { Result } from '../side-by-side.ts';

/** What a figure has to be. */
export interface Goal {
  readonly is: 'at least' | 'at most';
  readonly value: number;
}

/** One line of the table. */
export interface Figure {
  readonly what: string;
  /** How to read the value: `times less` than the peer, `µs`, `ms`, … */
  readonly unit: string;
  readonly value: number;
  readonly goal: Goal;
  /** The value in each round, when there were several; `value` is their median. */
  readonly rounds?: readonly number[];
  /** What each side measured, in the round of the value. */
  readonly ours?: number;
  readonly theirs?: number;
}

/** A figure, or the reason why there is none. */
export type Line = { readonly name: string; readonly skipped: string } | Figure;

/** How much is measured, and beside which peers. */
export interface Extent {
  readonly tasks: number;
  readonly repeat: number;
  /** The sizes that take minutes are measured as well. */
  readonly isFull: boolean;
  /** Interpreters of Python: with the Dask beside which we are measured, with that whose workers we serve, and with HyperQueue. */
  readonly python: string;
  readonly served: string;
  readonly hyperqueue: string;
}

/** Runs one benchmark script of ours; each line that it prints. */
export type Measure = (
  script: string,
  args: readonly (string | number)[],
) => Promise<readonly Result[]>;

/** A group of figures that one or several scripts give. */
export interface Row {
  readonly name: string;
  /** Which interpreter has the Dask that it needs. */
  readonly needs?: 'python' | 'served';
  figures(measure: Measure, extent: Extent): Promise<readonly Line[]>;
}

export const atLeast = (value: number): Goal => ({ is: 'at least', value });
export const atMost = (value: number): Goal => ({ is: 'at most', value });
export const VS_DASK = '--vs-dask';

/** Medians of several turns in which each input is measured once. */
export async function alternate<T>(
  turns: number,
  inputs: readonly T[],
  measure: (input: T) => Promise<number>,
): Promise<readonly number[]> {
  const values = inputs.map(() => [] as number[]);
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, input] of inputs.entries()) values[index]?.push(await measure(input));
  }
  return values.map((own) => own.toSorted((a, b) => a - b)[own.length >> 1] as number);
}

export function three(lines: readonly Result[]): readonly [Result, Result, Result] {
  if (lines.length === 3) return lines as [Result, Result, Result];
  throw new Error(`three lines were expected: ours, the peer's and the ratio; got ${lines.length}`);
}

export function number(line: Result | undefined, field: string): number {
  const value = line?.[field];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`the benchmark printed no "${field}"`);
}
