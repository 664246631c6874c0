import { createInterface } from 'node:readline';
import type { Why } from '../../../core/api/index.ts';
import type { SchedulerKernel } from '../../../core/kernel/kernel.ts';
import type { ReplayDifference, ReplayFrame } from '../../../core/log/replay.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { countOf, printable } from '../../../core/util/values.ts';
import { replayRecording, type ReplayResult } from '../../app/past.ts';
import { checkpointBefore, type CheckpointPlace } from '../../app/read-log.ts';
import { say } from '../terminal.ts';
import { whyText } from './why.ts';

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

const HELP = `  Enter      the next stimulus
  FRAME      continue to this frame, which has to come
  why KEY    why the task is where it is
  quit       end here
`;
/** Transitions of one stimulus that are shown. */
const SHOWN = 20;

/** Shows a replay stimulus by stimulus, and does what lines of the input say in between. */
class ReplaySteps {
  private readonly lines: AsyncIterator<string>;
  private readonly input: ReturnType<typeof createInterface>;
  /** The replay was ended before the end of the recording. */
  hasQuit = false;
  /** Nothing is shown before this frame. */
  private until = 0;

  /** @param from - the frame before which the steps begin; default: the first one */
  constructor(
    input: NodeJS.ReadableStream,
    private readonly output: NodeJS.WritableStream,
    from = 0,
  ) {
    this.until = from;
    this.input = createInterface({ input });
    this.lines = this.input[Symbol.asyncIterator]();
    output.write(HELP);
  }

  /** Called after each frame of a recording that began at `startMs`. Resolves with false when the replay is to end. */
  async after(frame: ReplayFrame, kernel: SchedulerKernel, startMs: number): Promise<boolean> {
    if (frame.kind !== 'stimulus' || frame.sequence < this.until) return true;
    const { sequence, timeMs, payload } = frame;
    const seconds = ((timeMs - startMs) / 1000).toFixed(3);
    this.write(`${sequence}  ${seconds} s  ${stimulusText(payload)}`);
    const story = kernel.story(payload.stimulusId);
    for (const { key, start, finish } of story.slice(0, SHOWN)) {
      this.write(`    ${key}: ${start} -> ${finish}`);
    }
    if (story.length > SHOWN) this.write(`    and ${story.length - SHOWN} more transitions`);
    return this.ask(sequence, kernel);
  }

  close(): void {
    this.input.close();
  }

  /** Reads lines until one of them continues the replay. */
  private async ask(sequence: number, kernel: SchedulerKernel): Promise<boolean> {
    for (;;) {
      this.output.write('> ');
      const next = await this.lines.next();
      const line = next.done === true ? 'quit' : next.value.trim();
      const [word = '', key = ''] = line.split(/\s+(.*)/s);
      if (word === '') return true;
      if (word === 'quit' || word === 'q') {
        this.hasQuit = true;
        return false;
      }
      if (word === 'why' && key !== '') this.output.write(whyText(kernel.insight.why(key)));
      else if (!/^\d+$/.test(word)) this.output.write(HELP);
      else if (Number(word) <= sequence) {
        this.write(`frame ${word} is over; start again with --step --until ${word}`);
      } else {
        this.until = Number(word);
        return true;
      }
    }
  }

  private write(line: string): void {
    this.output.write(`${printable(line)}\n`);
  }
}

/** Describes a stimulus: its report, its subject and its sender. */
function stimulusText(stimulus: Stimulus): string {
  const { op, stimulusId, key, keys, worker, client } = stimulus as Stimulus & {
    readonly key?: string;
    readonly keys?: readonly string[];
    readonly worker?: string;
    readonly client?: string;
  };
  const of = key ?? (keys === undefined ? undefined : countOf(keys.length, 'key'));
  const by = worker ?? client;
  const parts = [of === undefined ? '' : ` of ${of}`, by === undefined ? '' : ` by ${by}`];
  return `${op}${parts.join('')} (${stimulusId})`;
}
