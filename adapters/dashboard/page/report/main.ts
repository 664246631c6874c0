import type { ReportData } from '../../../report/report-data.ts';
import { BandwidthTables } from '../bandwidth-tables.ts';
import { button, h, on } from '../dom.ts';
import type { StreamSource } from '../link.ts';
import { switchTheme } from '../colours.ts';
import type { Around } from '../view.ts';
import { Profile } from '../views/profile.ts';
import { Stream } from '../views/stream.ts';
import { RecordedLink } from './recorded-link.ts';
import { RunPanel } from './run-panel.ts';
import { loadCharts, pathSection, prefixSection, timeSection, workerSection } from './sections.ts';

import 'uplot/dist/uPlot.min.css';
import '../style.css';
import './report.css';

const data = await loadReport();
const link = new RecordedLink(data);
const panel = new RunPanel(link.history);
const around: Around<StreamSource> = {
  link,
  showTask: (key) => panel.show(key),
  go: () => undefined,
  say: () => undefined,
};
const stream = new Stream(around, link.range);
const charts = loadCharts(data);
const left =
  data.shorterRuns === 0
    ? undefined
    : h(
        'p',
        { class: 'note' },
        `The stream shows the ${link.history.runs.length.toLocaleString('en')} longest runs; ${data.shorterRuns.toLocaleString('en')} shorter ones are in the figures, and not in the stream.`,
      );
const bandwidths = new BandwidthTables();
bandwidths.show(data.history.bandwidths);
const views = document.getElementById('views');
views?.replaceChildren(
  timeSection(data),
  stream.element,
  h('p', { class: 'note' }, 'A click on a task shows its runs.'),
  ...(left === undefined ? [] : [left]),
  h('div', { class: 'columns' }, ...charts.map(({ element }) => element)),
  prefixSection(data),
  pathSection(data, around),
  workerSection(data),
  ...profileSections(data),
  bandwidths.element,
);
document.body.append(panel.element);
const theme = button('Theme', () => {
  switchTheme();
  redraw();
});
theme.setAttribute('aria-label', 'Theme: light or dark');
document.querySelector('header.top')?.append(theme);
for (const one of charts) one.show();
on(matchMedia('(prefers-color-scheme: dark)'), { change: redraw });
document.documentElement.dataset['shown'] = 'true';

function redraw(): void {
  for (const { chart } of charts) chart.redraw();
  stream.draw();
}

/** The figures that stand in the page, packed. */
async function loadReport(): Promise<ReportData> {
  const text = document.getElementById('data')?.textContent ?? '""';
  const packed = atob(JSON.parse(text) as string);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(unpacked).json()) as ReportData;
}

/** The flame graph, where the calls of tasks were sampled. */
function profileSections({ history: { profile } }: ReportData): readonly HTMLElement[] {
  if (profile === undefined) return [];
  const view = new Profile();
  view.show(profile);
  return [view.element];
}
