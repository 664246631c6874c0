import type { Why } from '../../../core/api/index.ts';
import type { ReplayDifference } from '../../../core/log/replay.ts';
import { checkpointBefore, type CheckpointPlace } from '../../app/read-log.ts';
import { type ReplayResult, replayRecording } from '../../app/past.ts';
import { printable } from '../../../core/util/values.ts';
import { ReplaySteps } from '../replay-steps.ts';
import { whyText } from './why.ts';
import { say } from '../terminal.ts';

/** Flags of `replay`. */
export interface ReplayFlags {
  readonly until?: number;
  /** Stimulus by stimulus, from the frame `until` on. */
  readonly step?: boolean;
  readonly why?: string;
  readonly validate?: boolean;
  readonly allowPolicies?: boolean;
  readonly json?: boolean;
}

/** Transitions and decisions that `--why` can look back at. */
const STORY_LENGTH = 1_000_000;
const DIFFERS_CODE = 1;

/** `yardmaster replay`. */
export async function replayCommand(file: string, flags: ReplayFlags): Promise<number> {
  if (flags.step === true) return stepCommand(file, flags);
  const { until, why, validate, json, allowPolicies = false } = flags;
  // Why a task is where it is may have begun long before a checkpoint.
  const from = until === undefined || why !== undefined ? undefined : checkpointBefore(file, until);
  const result = await replayRecording(file, {
    allowPolicies,
    from,
    until,
    validate,
    ...(why === undefined ? {} : { storyLength: STORY_LENGTH }),
  });
  const explained = why === undefined ? undefined : result.kernel.insight.why(why);
  say(
    (from === undefined || json === true ? '' : beginText(from)) +
      (json === true ? jsonText(result, explained) : resultText(result, explained, until)),
  );
  const isUnknown = explained?.state === 'unknown' || isBeyond(result, until);
  return isUnknown ? DIFFERS_CODE : codeOf(result);
}

/** Reads what to do from standard input. */
async function stepCommand(file: string, flags: ReplayFlags): Promise<number> {
  const { until, validate, allowPolicies = false } = flags;
  const from = until === undefined ? undefined : checkpointBefore(file, until);
  const steps = new ReplaySteps(process.stdin, process.stdout, until);
  if (from !== undefined) say(beginText(from));
  try {
    const result = await replayRecording(file, {
      allowPolicies,
      from,
      validate,
      storyLength: STORY_LENGTH,
      onStep: (frame, kernel, startMs) => steps.after(frame, kernel, startMs),
    });
    say(`\n${resultText(result, undefined, steps.hasQuit ? 0 : undefined)}`);
    return codeOf(result);
  } finally {
    steps.close();
  }
}

function beginText({ endNumber }: CheckpointPlace): string {
  return `begun at the checkpoint of frame ${endNumber}: what came before it is neither compared nor in stories\n`;
}

function codeOf({ difference, damage }: ReplayResult): number {
  return difference === undefined && damage === undefined ? 0 : DIFFERS_CODE;
}

function resultText(result: ReplayResult, why: Why | undefined, until: number | undefined): string {
  const { header, stimuli, transitions, checks, stateChecks, difference, damage } = result;
  const made = new Date(header.createdAtMs).toISOString();
  const isJournal = header.holds === 'requests';
  const lines = [
    `${isJournal ? 'journal' : 'recording'} of ${made}, by Yardmaster ${header.version}`,
    `${stimuli} stimuli, ${transitions} transitions`,
  ];
  if (isJournal) {
    lines.push('its checkpoint is as it was written; a journal has no decisions to compare');
  } else if (difference === undefined) {
    lines.push(
      `identical: ${stimuli} stimuli, ${checks} checks, ${stateChecks} of the whole state`,
    );
  } else lines.push(...differenceLines(difference));
  if (damage !== undefined) lines.push(`${damage.message}; what comes before it was replayed`);
  else if (!result.isComplete && until === undefined) {
    lines.push('it was not closed: the scheduler was killed, or is running');
  }
  if (isBeyond(result, until)) {
    lines.push(`there is no frame ${until}: the last one is ${result.lastFrame}`);
  }
  return `${lines.map(printable).join('\n')}\n${why === undefined ? '' : `\n${whyText(why)}`}`;
}

/** True when the recording ends before the frame. */
function isBeyond({ lastFrame }: ReplayResult, until: number | undefined): boolean {
  return until !== undefined && until > lastFrame;
}

function differenceLines(difference: ReplayDifference): string[] {
  const { stimulus, sequence, what, recorded, replayed, story } = difference;
  const subject =
    stimulus === undefined
      ? 'before the first stimulus'
      : `${stimulus.stimulusId} (${stimulus.op})`;
  return [
    `different from frame ${sequence} on: ${subject}`,
    `  ${what} recorded ${recorded}, replayed ${replayed}`,
    ...story.map(({ key, start, finish }) => `  replayed: ${key}: ${start} -> ${finish}`),
  ];
}

function jsonText(result: ReplayResult, why: Why | undefined): string {
  const shown = { ...result, kernel: undefined, damage: result.damage?.message, why };
  return `${JSON.stringify(shown, undefined, 2)}\n`;
}
