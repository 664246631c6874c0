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
const NAME_MAX = 20;
const BAR_MIN = 4;
const BAR_MAX = 30;
const PERCENT_WIDTH = ' 100 %'.length;
const TIME_WIDTH = ' 99.9 ms left'.length;
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

  /** The width of lines above the bars; undefined: there are no bars. */
  get columns(): number | undefined {
    return this.bars && (this.stream.columns || COLUMNS) - 1;
  }

  /** Writes a line above the bars, without tearing them. What an old bar leaves to the right is cleared. */
  print(line: string): void {
    this.bars?.log(`${line}${CLEAR_RIGHT}\n`);
  }

  stop(): void {
    this.bars?.stop();
  }

  private lineOf(row: ProgressRow): string {
    const { rows, all, columns = COLUMNS } = this;
    const names = Math.max(...rows.map(({ name }) => Math.min(NAME_MAX, stringWidth(name))));
    const counts = outOf(all.total, all.total).length;
    const notes = rows.map(({ note = '', isShare = false }) => {
      // The note of a share stands where other rows have the time left.
      return stringWidth(note && ` ${note}`) - (isShare ? TIME_WIDTH : 0);
    });
    // The bar takes what the rest leaves; on a narrow terminal time and percent give way to it.
    let room = columns - names - counts - Math.max(0, ...notes) - '  '.length;
    const take = (width: number): boolean => {
      const isTaken = room - width >= BAR_MIN;
      if (isTaken) room -= width;
      return isTaken;
    };
    const { done, total, note = '', isShare = false } = row;
    const share = total > 0 ? Math.min(1, done / total) : isShare ? 0 : 1;
    const hasPercent = take(PERCENT_WIDTH);
    const hasTime = take(TIME_WIDTH);
    const name = fitted(row.name, NAME_MAX);
    return fitted(
      [
        name + ' '.repeat(Math.max(0, names - stringWidth(name))),
        barOf(share, Math.max(0, Math.min(BAR_MAX, room))),
        hasPercent && `${Math.floor(100 * share)} %`.padStart(PERCENT_WIDTH - 1),
        outOf(done, total).padStart(counts),
        (hasTime || !isShare) && note,
        hasTime && this.timeLeft(row),
      ]
        .filter(Boolean)
        .join(' '),
      columns,
    );
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

/** A line that is at most so many columns wide, with an ellipsis where it is cut; characters may take two or none. */
export function fitted(line: string, columns: number): string {
  if (stringWidth(line) <= columns) return line;
  let [shown, width] = ['', 1];
  for (const { segment } of new Intl.Segmenter().segment(line)) {
    width += stringWidth(segment);
    if (width > columns) break;
    shown += segment;
  }
  return `${shown}…`;
}
