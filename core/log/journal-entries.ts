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

/**
 * Number of the report of a client that the stimulus is; undefined when it comes from elsewhere, or when
 * more of the same report follows: the id of such a slice is {@link sliceId}.
 */
export function reportNumberOf(stimulus: Stimulus): number | undefined {
  if (!('client' in stimulus)) return undefined;
  const { client, stimulusId } = stimulus;
  // A graph that is refused becomes a release of its keys.
  const suffix = reportId('', client, '');
  const end = stimulusId.lastIndexOf('-') + 1;
  if (!stimulusId.slice(0, end).endsWith(suffix)) return undefined;
  const number = Number(stimulusId.slice(end));
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The id of a part of a report that is followed by further parts; the last one has the id of the report. */
export function sliceId(stimulusId: string, index: number): string {
  return `${stimulusId}/${index}`;
}

/** The id that a client gives to a report. */
export function reportId(op: string, client: string, number: number | string): string {
  return `${op}-${client.slice(-12)}-${number}`;
}
