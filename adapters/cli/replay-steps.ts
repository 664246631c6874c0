import { createInterface } from 'node:readline';
import { countOf, printable } from '../../core/util/values.ts';
import type { ReplayFrame } from '../../core/log/replay.ts';
import type { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { whyText } from './commands/why.ts';

const HELP = `  Enter      the next stimulus
  FRAME      continue to this frame, which has to come
  why KEY    why the task is where it is
  quit       end here
`;
/** Transitions of one stimulus that are shown. */
const SHOWN = 20;

/** Shows a replay stimulus by stimulus, and does what lines of the input say in between. */
export class ReplaySteps {
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
