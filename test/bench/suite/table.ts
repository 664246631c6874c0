import type { Figure, Goal, Line } from './row.ts';

/** Results within this part of the goal do not fail a guarded run: machines are noisy. */
const SLACK = 0.2;

/** Whether a figure is so far below what it was that it is no longer noise. */
export function isLost({ value, goal }: Figure, before: number): boolean {
  const worst = goal.is === 'at least' ? before * (1 - SLACK) : before * (1 + SLACK);
  return goal.is === 'at least' ? value < worst : value > worst;
}

/** A single line of the table, printed while the suite runs. */
export function brief(line: Line): string {
  if ('skipped' in line) return `${line.name}: ${line.skipped}`;
  return `${line.what}: ${short(line.value)} ${line.unit}, ${goalText(line.goal)}, ${verdict(line)}`;
}

/** As GitHub shows tables; also good to read in a terminal. */
export function markdown(lines: readonly Line[]): string {
  const head = ['what', 'value', 'goal', 'verdict', 'ours', 'peer'];
  const rows = lines.map((line) =>
    'skipped' in line
      ? [line.name, '', '', line.skipped, '', '']
      : [
          line.what,
          `${short(line.value)} ${line.unit}`,
          goalText(line.goal),
          verdict(line),
          line.ours === undefined ? '' : short(line.ours),
          line.theirs === undefined ? '' : short(line.theirs),
        ],
  );
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const text = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] as number)).join(' | ')} |`;
  const rule = text(widths.map((width) => '-'.repeat(width)));
  return [text(head), rule, ...rows.map(text)].join('\n');
}

function verdict({ value, goal }: Figure): 'met' | 'missed' {
  const isMet = goal.is === 'at least' ? value >= goal.value : value <= goal.value;
  return isMet ? 'met' : 'missed';
}

function goalText({ is, value }: Goal): string {
  return `${is === 'at least' ? '≥' : '≤'} ${value.toLocaleString('en-GB')}`;
}

/** Three figures that mean something. */
function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-GB');
  return String(Number(value.toPrecision(3)));
}
