import { sizeText } from '../../../core/util/units.ts';
import { countOf, escapeText } from '../../../core/util/values.ts';
import type { ComparedInstance, Comparison, Ratio, VariantSummary } from './compare.ts';
import { type FigureName, FIGURES } from './runs.ts';
import { interval, meanOf } from './statistics.ts';

/** One figure of a variant on an instance, over all seeds. */
export interface Figure {
  readonly mean: number;
  /** The mean divided by that of the baseline; undefined when that is 0. */
  readonly relative?: number;
  /** Half of the 95 % interval of `relative`, from the differences seed by seed; undefined for one seed. */
  readonly margin?: number;
}

/** Undefined when the variant or the baseline did not come to an end. */
export function figureOf(
  { runs }: ComparedInstance,
  policies: string,
  baseline: string,
  figure: FigureName,
): Figure | undefined {
  const own = runs[policies]?.seeds.map((seed) => seed[figure]) ?? [];
  const base = runs[baseline]?.seeds.map((seed) => seed[figure]) ?? [];
  if (own.length === 0) return undefined;
  const mean = meanOf(own);
  const baseMean = meanOf(base);
  if (!(baseMean > 0)) return { mean };
  const differences = own.map((value, seed) => (value - (base[seed] ?? 0)) / baseMean);
  return { mean, relative: mean / baseMean, margin: interval(differences)?.margin };
}

/** The title of each figure, and the text of a value in the unit in which people think. */
const COLUMNS: Readonly<Record<FigureName, readonly [string, (value: number) => string]>> = {
  makespanS: ['makespan', (seconds) => `${short(seconds)} s`],
  movedBytes: ['moved', sizeText],
  peakWorkerBytes: ['peak of a worker', sizeText],
  spilledBytes: ['spilled', sizeText],
  pauses: ['pauses', short],
  idleShare: ['idle', (share) => `${(100 * share).toFixed(1)} %`],
  decisions: ['decisions', short],
  fallbacks: ['fallbacks', short],
};

/** Titles and rows of a table. */
export interface Table {
  readonly titles: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A row for each variant on each instance: means over the seeds, and relative to the baseline. */
export function instanceTable({ instances, summaries, baseline }: Comparison): Table {
  const rows = instances.flatMap((instance) =>
    summaries.map(({ policies }) => {
      const start = [instance.workload, instance.setting, policies];
      const error = instance.runs[policies]?.error;
      if (error !== undefined)
        return [...start, `failed: ${error}`, ...FIGURES.slice(1).map(() => '')];
      return [
        ...start,
        ...FIGURES.map((name) => figureText(name, figureOf(instance, policies, baseline, name))),
      ];
    }),
  );
  const titles = FIGURES.map((name) => COLUMNS[name][0]);
  return withoutEmpty({ titles: ['workload', 'setting', 'policies', ...titles], rows });
}

function figureText(name: FigureName, figure: Figure | undefined): string {
  if (figure === undefined) return '';
  const { mean, relative, margin = 0 } = figure;
  const text = COLUMNS[name][1](mean);
  if (relative === undefined) return text;
  return `${text} (${relative.toFixed(2)}${margin === 0 ? '' : ` ± ${margin.toFixed(2)}`})`;
}

/** A row for each variant over all instances. */
export function summaryTable({ summaries }: Comparison): Table {
  const titles = [
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
  const rows = summaries.map((summary) => [
    summary.policies,
    ratioText(summary.makespan),
    ratioText(summary.moved),
    ratioText(summary.peak),
    ratioText(summary.overBound),
    ratioText(summary.overOffline),
    Number.isNaN(summary.overOffline.mean) ? '' : percent(summary.nearOffline),
    percent(summary.beaten),
    String(summary.pressed),
    String(summary.failed),
    summary.worst === undefined
      ? ''
      : `${summary.worst.ratio.toFixed(2)} ${summary.worst.instance}`,
  ]);
  return withoutEmpty({ titles, rows });
}

/** A row for each setting: makespan of each variant beside the baseline. */
export function settingTable({ summaries, settings }: Comparison): Table {
  const rows = settings.map(({ name }) => [
    name,
    ...summaries.map(({ bySetting }) => ratioText(bySetting[name] ?? { mean: NaN })),
  ]);
  return { titles: ['makespan', ...summaries.map(({ policies }) => policies)], rows };
}

/** Columns in which nothing is said are left out. */
function withoutEmpty({ titles, rows }: Table): Table {
  const filled = (_: string, column: number): boolean => rows.some((row) => row[column] !== '');
  return { titles: titles.filter(filled), rows: rows.map((row) => row.filter(filled)) };
}

function ratioText({ mean, low, high }: Ratio): string {
  if (Number.isNaN(mean)) return '';
  if (low === undefined || high === undefined) return mean.toFixed(3);
  return `${mean.toFixed(3)} (${low.toFixed(2)}-${high.toFixed(2)})`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** Three digits that count. */
function short(value: number): string {
  if (value === 0) return '0';
  const digits = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(6, 2 - digits)));
}

/** One sentence about what was measured. */
export function noteOf({ version, seeds, baseline, instances, settings }: Comparison): string {
  const graphs = new Set(instances.map(({ workload }) => workload)).size;
  return `${countOf(graphs, 'graph')}, ${countOf(settings.length, 'setting')}, ${countOf(seeds, 'seed')}, yardmaster ${version}. Relative to ${baseline}, with 95 % intervals.`;
}

/** A page that needs no other file, with a performance profile and a scatter of makespan and bytes. */
export function comparisonPage(comparison: Comparison): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Policies compared</title>
<style>
  body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem; }
  table { border-collapse: collapse; margin-bottom: 2rem; }
  th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: left; white-space: nowrap; }
  svg { background: #fff; max-width: 100%; }
  text { font: 12px system-ui, sans-serif; }
</style>
<h1>Policies compared</h1>
<p>${escapeText(noteOf(comparison))}</p>
${html(summaryTable(comparison))}
<h2>Performance profile</h2>
<p>Share of instances on which the makespan is at most so many times the shortest one of all policies.</p>
${profile(comparison)}
<h2>Makespan and bytes moved</h2>
<p>Geometric means with their intervals.</p>
${scatter(comparison.summaries)}
<h2>Makespan in each setting</h2>
${html(settingTable(comparison))}
<h2>Each instance</h2>
${html(instanceTable(comparison))}
</html>
`;
}

function html({ titles, rows }: Table): string {
  const row = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escapeText(text)}</${tag}>`).join('')}</tr>`;
  return `<table>\n${row('th', titles)}\n${rows.map((texts) => row('td', texts)).join('\n')}\n</table>`;
}

/** Pixels: of the picture, and the corners of its field. */
const SIZE = { width: 860, height: 420 };
const FIELD = { left: 60, right: 640, top: 20, bottom: 380 };
/** Neighbours are far apart on the wheel of hues. */
const colour = (index: number): string => `hsl(${(index * 137.5) % 360} 65% 42%)`;

interface Axis {
  readonly title: string;
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
}

/** A field with axes and a legend. `draw` gets the places of values, and makes what is inside. */
function chart(
  across: Axis,
  up: Axis,
  names: readonly string[],
  draw: (x: (value: number) => string, y: (value: number) => string) => readonly string[],
): string {
  const { left, right, top, bottom } = FIELD;
  const scale =
    ({ from, to }: Axis, low: number, high: number) =>
    (value: number) =>
      (low + ((high - low) * (value - from)) / (to - from)).toFixed(1);
  const x = scale(across, left, right);
  const y = scale(up, bottom, top);
  const parts = [
    ...across.ticks.map(
      (tick) =>
        `<path d="M${x(tick)} ${top}V${bottom}" stroke="#ddd"/><text x="${x(tick)}" y="${bottom + 16}" text-anchor="middle">${tick.toFixed(2)}</text>`,
    ),
    ...up.ticks.map(
      (tick) =>
        `<path d="M${left} ${y(tick)}H${right}" stroke="#ddd"/><text x="${left - 6}" y="${y(tick)}" dy="4" text-anchor="end">${tick.toFixed(2)}</text>`,
    ),
    ...names.map(
      (name, index) =>
        `<text x="${right + 14}" y="${top + 18 * (index + 1)}" fill="${colour(index)}">${escapeText(name)}</text>`,
    ),
    `<text x="${(left + right) / 2}" y="${SIZE.height - 6}" text-anchor="middle">${across.title}</text><text x="${left}" y="12">${up.title}</text>`,
    ...draw(x, y),
  ];
  return `<svg viewBox="0 0 ${SIZE.width} ${SIZE.height}" width="${SIZE.width}">\n${parts.join('\n')}\n</svg>`;
}

function profile({ summaries, instances }: Comparison): string {
  const names = summaries.map(({ policies }) => policies);
  const across = {
    title: 'times the shortest makespan',
    from: 1,
    to: 2,
    ticks: [1, 1.25, 1.5, 1.75, 2],
  };
  const up = { title: 'share of instances', from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1] };
  const secondsOf = ({ runs }: ComparedInstance, name: string): number => {
    const seconds = runs[name]?.seeds.map(({ makespanS }) => makespanS) ?? [];
    return seconds.length === 0 ? Infinity : meanOf(seconds);
  };
  return chart(across, up, names, (x, y) =>
    names.map((name, index) => {
      const factors = instances.map((instance) => {
        const shortestS = Math.min(...names.map((each) => secondsOf(instance, each)));
        return secondsOf(instance, name) / shortestS;
      });
      const steps = factors
        .filter((factor) => factor <= across.to)
        .sort((one, other) => one - other)
        .map((factor, rank) => `H${x(factor)}V${y((rank + 1) / instances.length)}`);
      return `<path d="M${x(1)} ${y(0)}${steps.join('')}H${x(across.to)}" fill="none" stroke="${colour(index)}" stroke-width="2"/>`;
    }),
  );
}

function scatter(summaries: readonly VariantSummary[]): string {
  const axis = (title: string, which: 'makespan' | 'moved'): Axis => {
    const ends = summaries.flatMap(({ [which]: { mean, low = mean, high = mean } }) => [low, high]);
    const known = [1, ...ends.filter(Number.isFinite)];
    const [from, to] = [Math.min(...known) - 0.02, Math.max(...known) + 0.02];
    return { title, from, to, ticks: [from, 1, to] };
  };
  const names = summaries.map(({ policies }) => policies);
  return chart(axis('makespan', 'makespan'), axis('bytes moved', 'moved'), names, (x, y) =>
    summaries.map(({ makespan, moved }, index) => {
      if (!Number.isFinite(makespan.mean + moved.mean)) return '';
      const [cx, cy] = [x(makespan.mean), y(moved.mean)];
      const across = `M${x(makespan.low ?? makespan.mean)} ${cy}H${x(makespan.high ?? makespan.mean)}`;
      const up = `M${cx} ${y(moved.low ?? moved.mean)}V${y(moved.high ?? moved.mean)}`;
      return `<path d="${across}${up}" stroke="${colour(index)}" opacity="0.5"/><circle cx="${cx}" cy="${cy}" r="5" fill="${colour(index)}"/>`;
    }),
  );
}
