import type { KeyTable } from '../../bridge/key-table.ts';

/** A transition as the scheduler keeps it. */
export interface Transition {
  readonly key: string;
  readonly start: string;
  readonly finish: string;
  readonly recommendations: readonly (readonly [key: string, state: string])[];
  readonly stimulusId: string;
  readonly atMs: number;
}

/** As Dask has it: key, start, finish, recommendations, stimulus id, seconds since 1970. */
export function transitionRow(record: Transition, keys: KeyTable): unknown[] {
  const { key, start, finish, recommendations, stimulusId, atMs } = record;
  return [
    keys.wireOf(key),
    start,
    finish,
    new Map(recommendations.map(([other, target]) => [keys.wireOf(other), target])),
    stimulusId,
    atMs / 1000,
  ];
}
