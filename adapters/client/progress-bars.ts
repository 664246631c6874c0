import { MultiBar } from 'cli-progress';
import stringWidth from 'string-width';
import { secondsText } from '../../core/util/units.ts';
import { outOf } from '../../core/util/values.ts';

/** One line of progress, whose counts are changed in place. */
export interface ProgressRow {
  readonly name: string;
  done: number;
  total: number;
  /** More about it, as the number of failures. */
  note?: string;
  /** The total grows with the work, so that no time left follows from it. */
  readonly isShare?: boolean;
}

const COLUMNS = 80;
/** Narrower lines have no percent, notes and time left. */
const WIDE = 60;
const NAME_MAX = 20;
const BAR_MAX = 30;
const TIME_WIDTH = '99.9 ms left'.length;
/** Lines that are written where no bars can be drawn. */
const LINES = 10;
const CLEAR_RIGHT = '\u001b[K';

/**
 * Draws progress until it is stopped: on a terminal with room for all rows a line for each of them with a bar, percent, counts and
 * the time left, elsewhere a line for each tenth of the whole.
 */
export class ProgressBars {
  private readonly bars: MultiBar | undefined;
  private linesWritten = 0;
  /** The moment at which the first end of a row was seen, with its count then: the time left is extrapolated from there. */
  private readonly begun = new Map<ProgressRow, { readonly atMs: number; readonly done: number }>();

  /** @param all - the whole, which may be one of the rows */
  constructor(
    private readonly all: ProgressRow,
    private readonly rows: readonly ProgressRow[],
    private readonly stream: NodeJS.WriteStream,
  ) {
    const hasRoom = !(stream.rows <= rows.length); // Undefined or 0: unknown.
    if (!stream.isTTY || process.env['TERM'] === 'dumb' || !hasRoom) return;
    this.bars = new MultiBar({
      format: (_options, _params, { row }: { row: ProgressRow }) => this.lineOf(row),
      // A line of text goes where the first bar was: those below it move, also when nothing changed.
      ...{ stream, hideCursor: true, forceRedraw: true },
    });
    for (const row of rows) this.bars.create(row.total, 0, { row });
  }

  /** Called after counts have changed. Bars are drawn in intervals. */
  changed(): void {
    const { done, total, note } = this.all;
    const tenth = total === 0 ? LINES : Math.floor((done * LINES) / total);
    if (this.bars !== undefined || tenth <= this.linesWritten) return;
    this.linesWritten = tenth;
    const what = total === 1 ? 'task done' : 'tasks done';
    this.stream.write(`${[`${outOf(done, total)} ${what}`, note].filter(Boolean).join(', ')}\n`);
  }

  /** Writes a text above the bars, without tearing them. False: there are none, and nothing is written. */
  print(text: string, indentation: string): boolean {
    for (const line of this.bars === undefined ? [] : wrapped(text, this.columns, indentation))
      this.bars?.log(`${line}${CLEAR_RIGHT}\n`);
    return this.bars !== undefined;
  }

  /** Terminals do not wrap lines while there are bars. */
  private get columns(): number {
    return (this.stream.columns || COLUMNS) - 1;
  }

  stop(): void {
    this.bars?.stop();
  }

  private lineOf(row: ProgressRow): string {
    const { rows, all, columns } = this;
    const { done, total, note = '', isShare = false } = row;
    const isWide = columns >= WIDE;
    const names = rows.map(({ name }) => Math.min(NAME_MAX, stringWidth(name)));
    // The note of a share stands where other rows have the time left.
    const notes = rows.map(
      (each) => stringWidth(each.note ?? '') - (each.isShare ? TIME_WIDTH : 0),
    );
    const share = total > 0 ? Math.min(1, done / total) : isShare ? 0 : 1;
    const name = fitted(row.name, NAME_MAX);
    const start = name + ' '.repeat(Math.max(...names) - stringWidth(name));
    const counts = outOf(done, total).padStart(outOf(all.total, all.total).length);
    const amount = isWide ? `${`${Math.floor(100 * share)} %`.padStart(5)} ${counts}` : counts;
    const tail = isWide ? Math.max(0, ...notes) + TIME_WIDTH + 2 : 0;
    const room = columns - stringWidth(start) - amount.length - tail - 2;
    const bar = barOf(share, Math.max(0, Math.min(BAR_MAX, room)));
    const rest = isWide ? [note, this.timeLeft(row)] : [];
    return fitted([start, bar, amount, ...rest].filter(Boolean).join(' '), columns);
  }

  private timeLeft(row: ProgressRow): string {
    const { done, total, isShare } = row;
    if (done === 0 || done >= total || isShare === true) return '';
    const nowMs = performance.now();
    const from = this.begun.get(row) ?? { atMs: nowMs, done };
    this.begun.set(row, from);
    if (done === from.done) return '';
    const seconds = ((nowMs - from.atMs) / 1000 / (done - from.done)) * (total - done);
    return `${secondsText(seconds)} left`;
  }
}

/** A bar that is filled to a share from 0 to 1. */
export function barOf(share: number, length: number): string {
  const filled = Math.round(length * Math.max(0, Math.min(1, share)));
  return '█'.repeat(filled) + '░'.repeat(length - filled);
}

/** A line that is at most so many columns wide, with an ellipsis where it is cut. */
export function fitted(line: string, columns: number): string {
  return stringWidth(line) <= columns ? line : `${beginningOf(line, columns - 1)}…`;
}

/** The beginning of a line that is at most so many columns wide; characters may take two or none. */
function beginningOf(line: string, columns: number): string {
  let [shown, width] = ['', 0];
  for (const { segment } of new Intl.Segmenter().segment(line)) {
    width += stringWidth(segment);
    if (width > columns) break;
    shown += segment;
  }
  return shown;
}

/**
 * A line in parts of at most so many columns, split at spaces where there are any. All but the first are indented, unless the
 * terminal is narrow.
 */
export function wrapped(line: string, columns: number, indentation = ''): string[] {
  const parts: string[] = [];
  const indent = columns > 3 * indentation.length ? indentation : '';
  let rest = line;
  while (stringWidth(rest) > columns) {
    // A character that is wider than the terminal stays whole.
    const fits = beginningOf(rest, columns).length || 1;
    const space = rest.lastIndexOf(' ', fits);
    const end = space > indent.length ? space : fits;
    parts.push(rest.slice(0, end));
    rest = indent + rest.slice(end).trimStart();
  }
  return [...parts, rest];
}
