import type { ComparedRun, Comparison, Figure, FigureName } from './compare.ts';

const TITLES: Readonly<Record<FigureName, string>> = {
  makespanS: 'makespan',
  movedBytes: 'moved',
  peakWorkerBytes: 'peak of a worker',
  spilledBytes: 'spilled',
  idleShare: 'idle',
  decisions: 'decisions',
  fallbacks: 'fallbacks',
};

/** What a column shows: a value, and in how many units of it people think. */
const SHOWN: Readonly<Record<FigureName, (value: number) => string>> = {
  makespanS: (seconds) => `${short(seconds)} s`,
  movedBytes: megabytes,
  peakWorkerBytes: megabytes,
  spilledBytes: megabytes,
  idleShare: (share) => `${(100 * share).toFixed(1)} %`,
  decisions: (count) => short(count),
  fallbacks: (count) => short(count),
};

/** The titles of the columns. */
export const COLUMNS: readonly string[] = ['workload', 'policies', ...Object.values(TITLES)];

/** The cells of a run, in the order of {@link COLUMNS}: mean, spread over the seeds, and relative to the first. */
export function cells({ workload, policies, figures, error }: ComparedRun): string[] {
  if (figures === undefined) return [workload, policies, `failed: ${error ?? ''}`];
  const shown = (Object.keys(TITLES) as FigureName[]).map((name) => cell(name, figures[name]));
  return [workload, policies, ...shown];
}

/** A table of Markdown. */
export function markdownTable({ runs }: Comparison): string {
  const row = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`;
  const rule = COLUMNS.map((_, index) => (index < 2 ? '---' : '---:'));
  return [row(COLUMNS), row(rule), ...runs.map((run) => row(cells(run)))].join('\n');
}

/** A page that stands by itself. */
export function htmlPage({ runs, seeds }: Comparison): string {
  const row = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Policies compared</title>
<style>
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; }
  table { border-collapse: collapse; }
  th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap; }
  th:nth-child(-n + 2), td:nth-child(-n + 2) { text-align: left; }
</style>
<h1>Policies compared</h1>
<p>Means over ${seeds} seeds, with the standard deviation, and relative to the first policies.</p>
<table>
${row('th', COLUMNS)}
${runs.map((run) => row('td', cells(run))).join('\n')}
</table>
</html>
`;
}

function cell(name: FigureName, { mean, deviation, relative }: Figure): string {
  const show = SHOWN[name];
  const spread = deviation === 0 ? '' : ` ± ${percent(deviation / mean)}`;
  return `${show(mean)}${spread}${relative === undefined ? '' : ` (${relative.toFixed(2)})`}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

function megabytes(bytes: number): string {
  return `${short(bytes / 1e6)} MB`;
}

/** Three digits that count. */
function short(value: number): string {
  if (value === 0) return '0';
  const digits = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(6, 2 - digits)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
