import type { Figure, Goal, Line } from './row.ts';

/** A single line of the table, printed while the suite runs. */
export function brief(line: Line): string {
  if ('skipped' in line) return `${line.name}: ${line.skipped}`;
  return `${line.what}: ${short(line.value)} ${line.unit}, ${goalText(line.goal)}, ${verdict(line)}`;
}

/** What was measured, and what was to be reached. */
export function markdown(lines: readonly Line[]): string {
  const head = ['what', 'value', 'goal', 'verdict', 'ours', 'peer'];
  const rows = lines.map((line) =>
    'skipped' in line
      ? [line.name, '', '', line.skipped, '', '']
      : [
          line.what,
          `${short(line.value)}${rangeOf(line)} ${line.unit}`,
          goalText(line.goal),
          verdict(line),
          line.ours === undefined ? '' : short(line.ours),
          line.theirs === undefined ? '' : short(line.theirs),
        ],
  );
  return markdownTable(head, rows);
}

/** As GitHub shows tables; also good to read in a terminal. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const text = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`;
  const rule = text(widths.map((width) => '-'.repeat(width)));
  return [text(head), rule, ...rows.map(text)].join('\n');
}

/** The least and the most of several rounds. */
function rangeOf({ rounds = [] }: Figure): string {
  if (rounds.length < 2) return '';
  return ` (${short(Math.min(...rounds))} to ${short(Math.max(...rounds))})`;
}

function verdict({ value, goal }: Figure): 'met' | 'missed' {
  const isMet = goal.is === 'at least' ? value >= goal.value : value <= goal.value;
  return isMet ? 'met' : 'missed';
}

function goalText({ is, value }: Goal): string {
  return `${is === 'at least' ? '≥' : '≤'} ${value.toLocaleString('en-GB')}`;
}

/** Three figures that mean something. */
export function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-GB');
  return String(Number(value.toPrecision(3)));
}
