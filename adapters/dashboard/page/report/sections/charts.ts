import type { ReportData } from '../../../../report/report-data.ts';
import { Chart, type Series } from '../../chart.ts';
import { h, section } from '../../dom.ts';
import { bytes, count } from '../../format.ts';

/** A chart, and what fills it once it is on the page. */
export interface FilledChart {
  readonly element: HTMLElement;
  readonly chart: Chart;
  show(): void;
}

const THREADS: readonly Series[] = [
  { label: 'threads computing', colour: '#009e73' },
  { label: 'tasks waiting', colour: '#e69f00' },
];

const MEMORY: readonly Series[] = [
  { label: 'results', colour: '#0072b2' },
  { label: 'unmanaged', colour: '#e69f00' },
  { label: 'spilled', colour: '#8a94a0' },
];

/** Charts of the load over time. */
export function loadCharts({ analysis, history }: ReportData): readonly FilledChart[] {
  const { fromS, stepS, running, waiting } = analysis.load;
  const { memory } = history;
  return [
    filled({
      title: 'Threads and what waits for them',
      series: THREADS,
      format: count,
      times: running.map((_, index) => fromS + (index + 0.5) * stepS),
      lines: [running, waiting],
    }),
    filled({
      title: 'Memory of all workers',
      series: MEMORY,
      format: bytes,
      times: memory.map(({ atS }) => atS),
      lines: [
        memory.map(({ managedBytes }) => managedBytes),
        memory.map(({ unmanagedBytes }) => unmanagedBytes),
        memory.map(({ spilledBytes }) => spilledBytes),
      ],
    }),
  ];
}

function filled({
  title,
  series,
  format,
  times,
  lines,
}: {
  readonly title: string;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly times: readonly number[];
  readonly lines: readonly (readonly number[])[];
}): FilledChart {
  const chart = new Chart(title, series, format);
  const note = h('p', { class: 'note' }, times.length < 2 ? 'Too little was measured.' : '');
  return {
    element: section(title, chart.element, note),
    chart,
    show: () => chart.showAll(times, lines),
  };
}
