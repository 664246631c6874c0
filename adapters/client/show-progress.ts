import type { MultiBar, SingleBar } from 'cli-progress';

import type { Future } from './future.ts';
import { progress, type Progress, type ProgressCounts, type ProgressOptions } from './progress.ts';
import { printable } from '../../core/util/printable.ts';

/** Where to show the progress. */
export interface ShowProgressOptions extends ProgressOptions {
  /** Default: the error stream, because results go to the other one. */
  readonly stream?: NodeJS.WriteStream;
}

/** Prefixes with a bar of their own. */
const BARS_MAX = 12;

/** Lines that are written when the stream is not a terminal. */
const LINES = 10;

/** Whether a stream is a terminal on which lines can be drawn anew. */
export function canDrawBars(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY && process.env['TERM'] !== 'dumb';
}

/**
 * Shows how far futures are until all have come to an end: bars by prefix on a terminal, and a line for each tenth
 * elsewhere.
 * @returns the last counts
 */
export async function showProgress(
  futures: Iterable<Future<unknown>>,
  options: ShowProgressOptions = {},
): Promise<Progress> {
  const { stream = process.stderr, ...rest } = options;
  const followed = [...futures];
  const shown = canDrawBars(stream) ? await Bars.open(stream) : new Lines(stream);
  let last: Progress | undefined;
  try {
    for await (const counts of progress(followed, rest)) {
      last = counts;
      shown.update(counts);
    }
  } finally {
    shown.stop();
  }
  // There is at least one report.
  return last as Progress;
}

class Lines {
  private written = -1;

  constructor(private readonly stream: NodeJS.WriteStream) {}

  update(counts: Progress): void {
    const { total, pending } = counts;
    const step = total === 0 ? LINES : Math.floor(((total - pending) * LINES) / total);
    if (step <= this.written) return;
    this.written = step;
    this.stream.write(`${total - pending} of ${total} tasks are done${endsOf(counts)}\n`);
  }

  stop(): void {
    /* Lines stay. */
  }
}

class Bars {
  private readonly bars = new Map<string, SingleBar>();

  private constructor(private readonly multi: MultiBar) {}

  static async open(stream: NodeJS.WriteStream): Promise<Bars> {
    const { MultiBar } = (await import('cli-progress')).default;
    return new Bars(
      new MultiBar({
        format: '{name} {bar} {value}/{total}{ends}',
        ...{ stream, barsize: 32, hideCursor: true, clearOnComplete: false },
      }),
    );
  }

  update({ prefixes }: Progress): void {
    let shown = 0;
    for (const [prefix, counts] of prefixes) {
      if (shown++ === BARS_MAX) break;
      const name = printable(prefix).slice(0, 20).padEnd(20);
      const { total, pending } = counts;
      const payload = { name, ends: endsOf(counts) };
      const bar = this.bars.get(prefix) ?? this.multi.create(total, 0, payload);
      this.bars.set(prefix, bar);
      bar.update(total - pending, payload);
    }
  }

  stop(): void {
    this.multi.stop();
  }
}

/** Says apart what did not end well. */
function endsOf({ failed, cancelled }: ProgressCounts): string {
  const failures = failed === 0 ? '' : `, ${failed} failed`;
  return cancelled === 0 ? failures : `${failures}, ${cancelled} cancelled`;
}
