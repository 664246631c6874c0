import type { Stimulus } from '../messages/stimulus.ts';

/**
 * A journal holds what clients have said, and what cannot be learnt again from workers: never what was
 * decided. Results are not in it either, nor that there are any: the workers that hold them say so when they
 * come back.
 */
const RECORDED: ReadonlySet<string> = new Set<Stimulus['op']>([
  'register-client',
  'remove-client',
  'update-graph',
  'client-desires-keys',
  'client-releases-keys',
  'cancel-keys',
  'retry',
  'set-priority',
  'update-data',
  'want-replicas',
  'set-restrictions',
  'restart',
]);

/** What has to be written before the stimulus is handled; undefined: nothing. */
export function entryOf(stimulus: Stimulus, nextRunId: number): Stimulus | undefined {
  if (!RECORDED.has(stimulus.op)) return undefined;
  if (stimulus.op !== 'update-graph') return stimulus;
  // It is taken in at once when it is read again.
  return { ...stimulus, sliceTasks: undefined, firstRunIds: [nextRunId] } as unknown as Stimulus;
}

/** A release of so many keys may be one of several slices of a longer one. */
const SLICE_KEYS = 1000;

/**
 * Number of the report of a client that the stimulus is; undefined when it comes from elsewhere, or when
 * more of the same report follows.
 */
export function reportNumberOf(stimulus: Stimulus): number | undefined {
  if (!('client' in stimulus)) return undefined;
  if (stimulus.op === 'client-releases-keys' && stimulus.keys.length >= SLICE_KEYS) {
    return undefined;
  }
  const prefix = reportId(stimulus.op, stimulus.client, '');
  if (!stimulus.stimulusId.startsWith(prefix)) return undefined;
  const number = Number(stimulus.stimulusId.slice(prefix.length));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The id that a client gives to a report. */
export function reportId(op: string, client: string, number: number | string): string {
  return `${op}-${client.slice(-12)}-${number}`;
}
