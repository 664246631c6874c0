import { MultiBar, type SingleBar } from 'cli-progress';
import { canDrawBars } from '../../client/show-progress.ts';

/** Shows how far the work is: bars on a terminal, now and then a line elsewhere. */
export interface LiveView {
  /**
   * A task of this stage has ended on this worker, where that is known.
   * @param isAgain - it had ended before, and its result was lost
   */
  done(stage: string, worker?: string, isAgain?: boolean): void;
  /** A line of text, without tearing the bars. */
  print(line: string): void;
  stop(): void;
}

/** Below the first column of text of the demo. */
const INDENT = ' '.repeat(11);
const BAR_SIZE = 40;
const CLEAR_RIGHT = '\u001b[K';

/** Lines that are printed when the output is not a terminal. */
const LINES = 10;

/**
 * @param stages - tasks of each stage of the work
 * @param workers - names of those that have a bar from the start
 * @param stream - where people look; results go elsewhere
 * @param print - where lines go that stay
 */
export function startLiveView(
  stages: ReadonlyMap<string, number>,
  workers: readonly string[],
  stream: NodeJS.WriteStream,
  print: (line: string) => void,
): LiveView {
  const bars = stages.size + workers.length;
  const hasRoom = !(stream.rows <= bars); // Undefined or 0: unknown.
  return canDrawBars(stream) && hasRoom
    ? new Bars(stages, workers, stream)
    : new Lines(stages, stream, print);
}

/** A bar for each stage and for each worker. */
class Bars implements LiveView {
  private readonly all: MultiBar;
  private readonly stages: ReadonlyMap<string, SingleBar>;
  private readonly workers = new Map<string, SingleBar>();
  private readonly total: number;
  /** Of the longest name. */
  private readonly width: number;

  constructor(
    stages: ReadonlyMap<string, number>,
    workers: readonly string[],
    private readonly stream: NodeJS.WriteStream,
  ) {
    this.total = totalOf(stages);
    this.width = Math.max(...[...stages.keys(), ...workers].map(({ length }) => length));
    const counts = 2 * String(this.total).length + '  / '.length;
    const size = (stream.columns || 80) - this.width - counts;
    this.all = new MultiBar({
      format: '{name} {bar} {value}/{total}',
      ...{ stream, barsize: Math.max(1, Math.min(BAR_SIZE, size)), hideCursor: true },
      ...{ clearOnComplete: false, autopadding: true },
      // A line of text goes where the first bar was: those below it move, also when nothing changed.
      forceRedraw: true,
      barCompleteChar: '█',
      barIncompleteChar: '░',
    });
    this.stages = new Map([...stages].map(([name, total]) => [name, this.bar(name, total)]));
    for (const name of workers) this.workers.set(name, this.bar(name, this.total));
  }

  done(stage: string, worker?: string, isAgain = false): void {
    if (!isAgain) this.stages.get(stage)?.increment();
    if (worker === undefined) return;
    const own = this.workers.get(worker) ?? this.bar(worker, this.total);
    this.workers.set(worker, own);
    own.increment(own.getProgress() < 1 ? 1 : 0);
  }

  private bar(name: string, total: number): SingleBar {
    return this.all.create(total, 0, { name: name.padEnd(this.width) });
  }

  print(line: string): void {
    // Terminals do not wrap lines while there are bars; what an old bar leaves to the right is cleared.
    for (const part of wrapped(line, (this.stream.columns || 80) - 1)) {
      this.all.log(`${part}${CLEAR_RIGHT}\n`);
    }
  }

  stop(): void {
    this.all.stop();
  }
}

class Lines implements LiveView {
  private readonly total: number;
  private ended = 0;
  private printed = 0;

  constructor(
    stages: ReadonlyMap<string, number>,
    private readonly stream: NodeJS.WritableStream,
    readonly print: (line: string) => void,
  ) {
    this.total = totalOf(stages);
  }

  done(_stage: string, _worker?: string, isAgain = false): void {
    if (isAgain) return;
    this.ended++;
    const step = Math.floor((this.ended * LINES) / this.total);
    if (step <= this.printed) return;
    this.printed = step;
    this.stream.write(`${this.ended} of ${this.total} tasks are done\n`);
  }

  stop(): void {
    // Each line stands for itself.
  }
}

/**
 * A line in parts of at most so many characters, split at spaces where there are any. All but the first are indented,
 * unless the terminal is narrow.
 */
export function wrapped(line: string, width: number): string[] {
  const parts: string[] = [];
  const indent = width > 3 * INDENT.length ? INDENT : '';
  let rest = line;
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const end = space > indent.length ? space : width;
    parts.push(rest.slice(0, end));
    rest = indent + rest.slice(end).trimStart();
  }
  return [...parts, rest];
}

function totalOf(stages: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const count of stages.values()) total += count;
  return total;
}
