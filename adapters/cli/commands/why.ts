import type { Decision, DecisionCandidate, Why } from '../../../core/api/index.ts';
import { countOf, printable, printableLines } from '../../../core/util/values.ts';
import type { Explanation } from '../../dashboard/page-messages.ts';
import { reportText } from './report.ts';
import { withClient } from '../with-client.ts';
import { say } from '../terminal.ts';

const UNKNOWN_CODE = 1;

export interface WhyFlags {
  readonly scheduler: string;
  readonly config?: string;
  readonly record?: number;
  readonly json?: boolean;
}

/** Without a key: why the work that is under way takes as long as it does. */
export async function whyCommand(key: string | undefined, flags: WhyFlags): Promise<number> {
  return withClient(flags, 'why', async (client) => {
    if (flags.record !== undefined) await client.policies.recordDecisions(flags.record);
    if (key === undefined) {
      const found = await client.command<Explanation>('report.explain');
      say(
        `${flags.json === true ? JSON.stringify(found, undefined, 2) : printableLines(reportText(found))}\n`,
      );
      return 0;
    }
    const why = await client.why(key);
    say(flags.json === true ? `${JSON.stringify(why, undefined, 2)}\n` : whyText(why));
    return why.state === 'unknown' ? UNKNOWN_CODE : 0;
  });
}

/**
 * The present, then what happened; a decision stands before the transition that follows from it. Keys and errors of others
 * begin no lines of their own.
 */
export function whyText(why: Why): string {
  const lines = [`${why.key} is ${why.state}`, ...why.now.map((line) => `  ${line}`)];
  const startMs = Math.min(...[...why.story, ...why.decisions].map(({ atMs }) => atMs));
  const left = [...why.decisions];
  const story: string[] = [];
  for (const record of why.story) {
    while (left[0] !== undefined && comesBefore(left[0], record)) {
      story.push(...decisionLines(left.shift() as Decision, startMs));
    }
    const { key, start, finish, stimulusId, atMs } = record;
    story.push(`${clock(atMs, startMs)}  ${key}: ${start} -> ${finish}  (${stimulusId})`);
  }
  for (const decision of left) story.push(...decisionLines(decision, startMs));
  if (why.isStoryCut) {
    story.unshift(
      'older transitions are no longer remembered; scheduler.transitionLogLength says how many are, of all tasks together',
    );
  }
  if (story.length > 0) lines.push('', 'Story', ...story.map((line) => `  ${line}`));
  if (!why.isRecording) {
    lines.push('', 'Decisions are not being recorded; --record 10000 records them from now on.');
  }
  return `${lines.map(printable).join('\n')}\n`;
}

function comesBefore(decision: Decision, record: Why['story'][number]): boolean {
  if (decision.stimulusId !== record.stimulusId) return decision.atMs < record.atMs;
  return record.key === decision.key && record.start !== 'released';
}

function decisionLines(decision: Decision, startMs: number): string[] {
  const { kind, policy, outcome, rule, candidates, candidateCount, atMs } = decision;
  const more = candidateCount - candidates.length;
  return [
    `${clock(atMs, startMs)}  ${kind} by ${policy}: ${outcome}`,
    `            ${rule}`,
    ...candidates.map((candidate) => `              ${candidateText(candidate)}`),
    ...(more > 0 ? [`              and ${more} more`] : []),
  ];
}

function candidateText(candidate: DecisionCandidate): string {
  const { worker, score, missingBytes, memoryBytes } = candidate;
  const { occupancyS, processingCount, openSlots } = candidate;
  const facts = [
    ...(score === undefined ? [] : [`score ${round(score)}`]),
    ...(missingBytes === undefined ? [] : [`lacks ${missingBytes} bytes`]),
    ...(memoryBytes === undefined ? [] : [`${memoryBytes} bytes in use`]),
    `${round(occupancyS)} s of work`,
    countOf(processingCount, 'task'),
    ...(openSlots === undefined ? [] : [countOf(openSlots, 'open slot')]),
  ];
  return `${worker}  ${facts.join(', ')}`;
}

function clock(atMs: number, startMs: number): string {
  return `+${((atMs - startMs) / 1000).toFixed(3)} s`.padStart(10);
}

function round(value: number): string {
  return String(Number(value.toPrecision(3)));
}
