/** Figures of two runs of the suite, held against each other. */
import { readFileSync } from 'node:fs';
import type { Figure, Line } from './row.ts';
import { markdownTable, short } from './table.ts';

/** What a run of the suite leaves. */
export interface Figures {
  readonly date: string;
  /** Small graphs, one run of each. */
  readonly quick: boolean;
  readonly machine: Readonly<Record<string, unknown>>;
  readonly lines: readonly Line[];
}

/** How a figure moved from one run to another. */
export interface Movement {
  readonly figure: Figure;
  readonly before: Figure;
  /** The figure, divided by what it was. */
  readonly ratio: number;
  /** Where that ratio is, for all that was measured; 1 lies in it: nothing is known to have moved. */
  readonly low: number;
  readonly high: number;
  readonly verdict: 'better' | 'worse' | 'same';
}

/** Rounds of both sides from which their least and most say how far a figure scatters. */
const ROUNDS_FOR_A_RANGE = 3;
/** How far a figure scatters that was measured less often: machines are noisy. */
const SCATTER = 0.2;

/** Reads what `--json` wrote. */
export function readFigures(path: string): Figures {
  return JSON.parse(readFileSync(path, 'utf8')) as Figures;
}

/** The rounds of one row as one: medians, each with the figures of all rounds. */
export function ofRounds(rounds: readonly (readonly Line[])[]): readonly Line[] {
  const [first = []] = rounds;
  if (rounds.length < 2) return first;
  const figures = rounds.flat().filter(isFigure);
  const names = [...new Set(figures.map(nameOf))];
  const medians = names.map((name) => {
    const all = figures.filter((figure) => nameOf(figure) === name);
    const sorted = all.toSorted((a, b) => a.value - b.value);
    return { ...(sorted[sorted.length >> 1] as Figure), rounds: all.map(({ value }) => value) };
  });
  return medians.length > 0 ? medians : first;
}

/** Every figure that both runs have. */
export function movements(before: readonly Line[], after: readonly Line[]): readonly Movement[] {
  const earlier = new Map(before.filter(isFigure).map((line) => [nameOf(line), line]));
  return after.filter(isFigure).flatMap((figure) => {
    const was = earlier.get(nameOf(figure));
    return was === undefined ? [] : [movement(was, figure)];
  });
}

function movement(before: Figure, figure: Figure): Movement {
  const ratio = figure.value / before.value;
  const [old, now] = [before.rounds ?? [], figure.rounds ?? []];
  const isRange = Math.min(old.length, now.length) >= ROUNDS_FOR_A_RANGE;
  const low = isRange ? Math.min(...now) / Math.max(...old) : ratio / (1 + SCATTER);
  const high = isRange ? Math.max(...now) / Math.min(...old) : ratio / (1 - SCATTER);
  const isMore = low > 1;
  const isLess = high < 1;
  const isBetter = figure.goal.is === 'at least' ? isMore : isLess;
  const verdict = isBetter ? 'better' : isMore || isLess ? 'worse' : 'same';
  return { figure, before, ratio, low, high, verdict };
}

/** What moved first, what did not after it. */
export function comparison(before: Figures, after: Figures): string {
  const all = movements(before.lines, after.lines);
  const moved = all.filter(({ verdict }) => verdict !== 'same');
  const rows = [...moved, ...all.filter(({ verdict }) => verdict === 'same')].map((each) => [
    each.figure.what,
    each.figure.unit,
    short(each.before.value),
    short(each.figure.value),
    `${short(each.ratio)} (${short(each.low)} to ${short(each.high)})`,
    each.verdict,
  ]);
  const head = ['what', 'unit', before.date.slice(0, 10), 'now', 'ratio', 'verdict'];
  const notes = [
    `${moved.length} of ${all.length} figures moved.`,
    ...(before.quick === after.quick
      ? []
      : ['One of both runs was a quick one: its graphs are smaller.']),
    ...(JSON.stringify(before.machine['cpu']) === JSON.stringify(after.machine['cpu'])
      ? []
      : ['The machines differ: only ratios to a peer can be compared.']),
  ];
  return `${markdownTable(head, rows)}\n\n${notes.join('\n')}\n`;
}

export function nameOf({ what, unit }: Figure): string {
  return `${what}, ${unit}`;
}

function isFigure(line: Line): line is Figure {
  return !('skipped' in line);
}
