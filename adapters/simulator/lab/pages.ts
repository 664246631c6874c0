import type { ComparedRun, Comparison, Figure } from './compare.ts';
import type { CorpusInstance, CorpusReport, Ratio, VariantSummary } from './corpus.ts';
import type { FigureName } from './runs.ts';

const TITLES: Readonly<Record<FigureName, string>> = {
  makespanS: 'makespan',
  movedBytes: 'moved',
  peakWorkerBytes: 'peak of a worker',
  spilledBytes: 'spilled',
  pauses: 'pauses',
  idleShare: 'idle',
  decisions: 'decisions',
  fallbacks: 'fallbacks',
};

/** The text of a column's value, in the unit in which people think. */
const SHOWN: Readonly<Record<FigureName, (value: number) => string>> = {
  makespanS: (seconds) => `${short(seconds)} s`,
  movedBytes: megabytes,
  peakWorkerBytes: megabytes,
  spilledBytes: megabytes,
  pauses: (count) => short(count),
  idleShare: (share) => `${(100 * share).toFixed(1)} %`,
  decisions: (count) => short(count),
  fallbacks: (count) => short(count),
};

/** The titles of the columns. */
export const COLUMNS: readonly string[] = ['workload', 'policies', ...Object.values(TITLES)];

/** The cells of a run, in the order of {@link COLUMNS}: mean, and relative to the first with its 95 % interval. */
export function cells({ workload, policies, figures, error }: ComparedRun): string[] {
  if (figures === undefined) return [workload, policies, `failed: ${error ?? ''}`];
  const shown = (Object.keys(TITLES) as FigureName[]).map((name) => cell(name, figures[name]));
  return [workload, policies, ...shown];
}

/** A page with the table of a comparison, which stands by itself. */
export function comparisonPage({ runs, seeds }: Comparison): string {
  const text = `Means over ${seeds} seeds, and relative to the first policies with 95 % intervals, paired over the seeds.`;
  return page('Policies compared', text, tableOf(COLUMNS, runs.map(cells)));
}

function cell(name: FigureName, { mean, relative, margin }: Figure): string {
  const text = SHOWN[name](mean);
  if (relative === undefined) return text;
  const spread = margin === undefined || margin === 0 ? '' : ` ± ${margin.toFixed(2)}`;
  return `${text} (${relative.toFixed(2)}${spread})`;
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

/** The titles of the columns of {@link summaryCells}. */
export const SUMMARY_COLUMNS: readonly string[] = [
  'policies',
  'makespan',
  'moved',
  'peak of a worker',
  'of the bound',
  'of offline',
  'within 1.25',
  'beaten',
  'spill or pause',
  'failed',
  'worst instance',
];

/** A row of the table of all variants. */
export function summaryCells(summary: VariantSummary): string[] {
  const { policies, makespan, moved, peak, overBound, overOffline, nearOffline } = summary;
  const { beaten, pressed, failed, worst } = summary;
  return [
    policies,
    ratioText(makespan),
    ratioText(moved),
    ratioText(peak),
    ratioText(overBound),
    overOffline === undefined ? '' : ratioText(overOffline),
    nearOffline === undefined ? '' : percent(nearOffline),
    percent(beaten),
    String(pressed),
    String(failed),
    worst === undefined ? '' : `${worst.ratio.toFixed(2)} ${worst.instance}`,
  ];
}

/** A ratio with its interval. */
export function ratioText({ mean, low, high }: Ratio): string {
  if (Number.isNaN(mean)) return '';
  if (low === undefined || high === undefined) return mean.toFixed(3);
  return `${mean.toFixed(3)} (${low.toFixed(2)}-${high.toFixed(2)})`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** What is measured, and how. */
export function corpusNote({
  version,
  seeds,
  baseline,
  instances,
  settings,
}: CorpusReport): string {
  const graphs = new Set(instances.map(({ workload }) => workload)).size;
  return `${graphs} graphs, ${settings.length} settings, ${seeds} seeds, yardmaster ${version}. Makespan, bytes moved and peak are geometric means relative to ${baseline}, with 95 % intervals over the graphs.`;
}

/** A page that stands by itself, with a performance profile and a scatter of makespan and bytes. */
export function corpusPage(report: CorpusReport): string {
  const { summaries, instances, settings } = report;
  const names = summaries.map(({ policies }) => policies);
  const bySetting = summaries.map(({ policies, bySetting: ratios }) => [
    policies,
    ...settings.map((setting) => ratioText(ratios[setting] as Ratio)),
  ]);
  const byInstance = instances.map((instance) => [
    instance.workload,
    instance.setting,
    ...names.map((name) => timesOf(instance, name, instance.boundsS)?.toFixed(2) ?? 'failed'),
    ratioOfMeans(instance.offlineS, instance.boundsS)?.toFixed(2) ?? '',
  ]);
  const body = `${tableOf(SUMMARY_COLUMNS, summaries.map(summaryCells))}
<h2>Performance profile</h2>
<p>Share of instances on which the makespan is at most so many times the shortest one of all policies.</p>
${profile(report)}
<h2>Makespan and bytes moved</h2>
<p>Geometric means relative to ${escaped(report.baseline)}, with their intervals.</p>
${scatter(summaries)}
<h2>Makespan in each setting</h2>
${tableOf(['policies', ...settings], bySetting)}
<h2>Each instance</h2>
<p>Makespan as a multiple of the lower bound.</p>
${tableOf(['graph', 'setting', ...names, 'offline'], byInstance)}`;
  return page('Policies on a corpus', corpusNote(report), body);
}

/** A page that needs no other file. */
function page(title: string, note: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title}</title>
<style>
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; }
  table { border-collapse: collapse; margin-bottom: 2rem; }
  th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap; }
  th:nth-child(-n + 2), td:nth-child(-n + 2) { text-align: left; }
  svg { background: #fff; max-width: 100%; }
  text { font: 12px system-ui, sans-serif; }
</style>
<h1>${title}</h1>
<p>${escaped(note)}</p>
${body}
</html>
`;
}

function tableOf(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
  return `<table>\n${row('th', titles)}\n${rows.map((texts) => row('td', texts)).join('\n')}\n</table>`;
}

function timesOf({ runs }: CorpusInstance, name: string, otherS: readonly number[]) {
  return ratioOfMeans(runs[name]?.seeds.map(({ makespanS }) => makespanS) ?? [], otherS);
}

function ratioOfMeans(own: readonly number[], other: readonly number[]): number | undefined {
  const total = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0);
  return own.length === 0 || total(other) === 0 ? undefined : total(own) / total(other);
}

const WIDTH = 860;
const HEIGHT = 420;
const LEFT = 60;
const RIGHT = 220;
const EDGE = 40;
/** Far apart on a wheel of hues. */
const colour = (index: number): string => `hsl(${(index * 137.5) % 360} 65% 42%)`;

/** An axis: where a value is, and the values that are written beside it. */
interface Axis {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
  readonly title: string;
  readonly show: (value: number) => string;
}

function chart(x: Axis, y: Axis, content: string, names: readonly string[]): string {
  const bottom = HEIGHT - EDGE;
  const vertical = x.ticks.map((tick) => {
    const at = x.at(tick).toFixed(1);
    return `<path d="M${at} ${EDGE / 2}V${bottom}" stroke="#ddd"/><text x="${at}" y="${bottom + 16}" text-anchor="middle">${x.show(tick)}</text>`;
  });
  const horizontal = y.ticks.map((tick) => {
    const at = y.at(tick).toFixed(1);
    return `<path d="M${LEFT} ${at}H${WIDTH - RIGHT}" stroke="#ddd"/><text x="${LEFT - 6}" y="${at}" dy="4" text-anchor="end">${y.show(tick)}</text>`;
  });
  const legend = names.map(
    (name, index) =>
      `<text x="${WIDTH - RIGHT + 14}" y="${EDGE + 18 * index}" fill="${colour(index)}">${escaped(name)}</text>`,
  );
  const titles = `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${x.title}</text><text x="${LEFT}" y="12">${y.title}</text>`;
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}">\n${[...vertical, ...horizontal, ...legend].join('\n')}\n${titles}\n${content}\n</svg>`;
}

function scale(from: number, to: number, low: number, high: number): (value: number) => number {
  return (value) => low + ((high - low) * (value - from)) / (to - from);
}

const FACTOR_MAX = 2;

function profile({ summaries, instances }: CorpusReport): string {
  const names = summaries.map(({ policies }) => policies);
  const x: Axis = {
    at: scale(1, FACTOR_MAX, LEFT, WIDTH - RIGHT),
    ticks: [1, 1.2, 1.4, 1.6, 1.8, 2],
    title: 'times the shortest makespan',
    show: (value) => value.toFixed(1),
  };
  const y: Axis = {
    at: scale(0, 1, HEIGHT - EDGE, EDGE / 2),
    ticks: [0, 0.25, 0.5, 0.75, 1],
    title: 'share of instances',
    show: percent,
  };
  const factors = names.map((name) =>
    instances
      .map((instance) => {
        const all = names.flatMap((each) => timesOf(instance, each, [1]) ?? []);
        return (timesOf(instance, name, [1]) ?? Infinity) / Math.min(...all);
      })
      .sort((one, other) => one - other),
  );
  const lines = factors.map((sorted, index) => {
    let path = `M${x.at(1).toFixed(1)} ${y.at(0).toFixed(1)}`;
    sorted.forEach((factor, rank) => {
      if (factor > FACTOR_MAX) return;
      path += `H${x.at(factor).toFixed(1)}V${y.at((rank + 1) / sorted.length).toFixed(1)}`;
    });
    return `<path d="${path}H${WIDTH - RIGHT}" fill="none" stroke="${colour(index)}" stroke-width="2"/>`;
  });
  return chart(x, y, lines.join('\n'), names);
}

function scatter(summaries: readonly VariantSummary[]): string {
  const axis = (which: 'makespan' | 'moved', low: number, high: number, title: string): Axis => {
    const values = summaries.flatMap((summary) => {
      const { mean, low: least = mean, high: most = mean } = summary[which];
      return Number.isFinite(mean) ? [least, most] : [];
    });
    const from = Math.min(1, ...values) - 0.02;
    const to = Math.max(1, ...values) + 0.02;
    const ticks = [from, 1, to];
    return { at: scale(from, to, low, high), ticks, title, show: (value) => value.toFixed(2) };
  };
  const x = axis('makespan', LEFT, WIDTH - RIGHT, 'makespan');
  const y = axis('moved', HEIGHT - EDGE, EDGE / 2, 'bytes moved');
  const points = summaries.map(({ makespan, moved }, index) => {
    if (!Number.isFinite(makespan.mean) || !Number.isFinite(moved.mean)) return '';
    const [left, right] = [
      x.at(makespan.low ?? makespan.mean),
      x.at(makespan.high ?? makespan.mean),
    ];
    const [bottom, top] = [y.at(moved.low ?? moved.mean), y.at(moved.high ?? moved.mean)];
    const [cx, cy] = [x.at(makespan.mean).toFixed(1), y.at(moved.mean).toFixed(1)];
    const bars = `M${left.toFixed(1)} ${cy}H${right.toFixed(1)}M${cx} ${bottom.toFixed(1)}V${top.toFixed(1)}`;
    return `<path d="${bars}" stroke="${colour(index)}" opacity="0.5"/><circle cx="${cx}" cy="${cy}" r="5" fill="${colour(index)}"/>`;
  });
  return chart(
    x,
    y,
    points.join('\n'),
    summaries.map(({ policies }) => policies),
  );
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
