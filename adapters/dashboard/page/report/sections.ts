import type { ReportData } from '../../../report/report-data.ts';
import { Bar, legend } from '../bar.ts';
import { Chart, type Series } from '../chart.ts';
import { prefixColour } from '../colours.ts';
import { figure, h, section, Table } from '../dom.ts';
import { bytes, count, preciseClock, seconds } from '../format.ts';
import type { StreamSource } from '../link.ts';
import { taskLink } from '../task-link.ts';
import type { Around } from '../view.ts';

const KINDS = [
  ['runS', '#009e73', 'running'],
  ['transferS', '#d55e00', 'fetching inputs'],
  ['diskS', '#8c6d1f', 'on disk'],
  ['otherS', '#7f7f7f', 'other work'],
  ['queuedS', '#e69f00', 'waiting at the scheduler'],
  ['waitedS', '#56b4e9', 'waiting on workers'],
] as const;

/** The section about the time of tasks. */
export function timeSection({ analysis, path }: ReportData): HTMLElement {
  const rows = (
    [
      ['all tasks', analysis.time],
      ['critical path', path.time],
    ] as const
  ).map(([name, time]) => {
    const total = KINDS.reduce((sum, [kind]) => sum + time[kind], 0);
    const words = KINDS.flatMap(([kind, , text]) =>
      time[kind] === 0 ? [] : [`${seconds(time[kind])} ${text}`],
    );
    const bar = new Bar();
    bar.show(
      KINDS.map(([kind, colour, text]) => ({
        name: text,
        colour,
        share: total === 0 ? 0 : time[kind] / total,
      })),
      words.length === 0 ? 'no time' : words.join(', '),
    );
    return { key: name, cells: [name, bar.element, figure(seconds, total)] };
  });
  const table = new Table('Time of tasks', ['of', 'where it went', 'in all'], '');
  table.show(rows);
  return section(
    'Where the time went',
    h('p', { class: 'note' }, 'From the moment when a task could run until it was done, summed.'),
    legend(KINDS),
    table.element,
  );
}

/** All prefixes, the most expensive first. */
export function prefixSection({ analysis }: ReportData): HTMLElement {
  const table = new Table(
    'Tasks by prefix',
    ['prefix', 'runs', 'failed', 'in all', 'median', 'longest', 'fetching', 'results'],
    'Nothing ran.',
    '',
  );
  table.show(
    analysis.prefixes.map((one) => {
      const colour = h('span', { class: 'mark', 'aria-hidden': 'true' });
      colour.style.background = prefixColour(one.prefix);
      return {
        key: String(one.prefix),
        cells: [
          h('span', {}, colour, one.name),
          ...[one.runs, one.failed, figure(seconds, one.runS), figure(seconds, one.medianS)],
          ...[figure(seconds, one.maxS), figure(seconds, one.transferS)],
          figure(bytes, one.resultBytes),
        ],
      };
    }),
  );
  return section('Tasks by prefix', table.element);
}

/** The tasks that the end of the work waited for. */
export function pathSection(
  { path, history }: ReportData,
  around: Around<StreamSource>,
): HTMLElement {
  const table = new Table(
    'Critical path',
    ['task', 'worker', 'queued', 'waited', 'fetching', 'ran'],
    'Nothing ran.',
    '',
  );
  table.show(
    path.steps.map(({ key, prefix, worker, queuedS, waitedS, transferS, runS }, index) => {
      const colour = h('span', { class: 'mark', 'aria-hidden': 'true' });
      colour.style.background = prefixColour(prefix);
      return {
        key: String(index),
        cells: [
          h('span', {}, colour, taskLink(around, key)),
          history.workers[worker]?.name ?? '',
          ...[queuedS, waitedS, transferS, runS].map((spentS) => figure(seconds, spentS)),
        ],
      };
    }),
  );
  const more = path.count - path.steps.length;
  return section(
    'Critical path',
    h(
      'p',
      { class: 'note' },
      `Each task needed the result of the one before it, last of all its inputs; in all ${seconds(path.lengthS)}.` +
        (more > 0 ? ` The first ${count(more)} are not listed.` : ''),
    ),
    table.element,
  );
}

export function workerSection({ analysis, history }: ReportData): HTMLElement {
  const titles = ['worker', 'threads', 'runs', 'busy', 'idle', 'fetching', 'memory at most'];
  const table = new Table('Workers', [...titles, 'spilled', 'connected'], 'There was none.', '');
  table.show(
    analysis.workers.map(
      ({ worker, name, threads, runs, busyS, idleShare, capacityS, transferS }) => {
        const known = history.workers[worker];
        const { address = '', peakBytes = 0, memoryLimitBytes: limit = 0 } = known ?? {};
        const { peakSpilledBytes = 0, fromS = 0, toS } = known ?? {};
        const isMeasured = capacityS > 0;
        const bar = new Bar();
        bar.show(
          [{ name: 'busy', colour: '#009e73', share: isMeasured ? 1 - idleShare : 0 }],
          isMeasured ? `busy for ${seconds(busyS)} of ${seconds(capacityS)}` : 'there was no work',
        );
        const end = toS === undefined ? 'to the end' : `to ${preciseClock(1000 * toS)}`;
        const lost = known?.lost === undefined ? '' : ', lost';
        return {
          key: String(worker),
          cells: [
            h('span', { title: address }, name),
            ...[threads, runs, bar.element],
            isMeasured ? figure(percent, idleShare) : '–',
            figure(seconds, transferS),
            {
              shown: `${bytes(peakBytes)}${limit > 0 ? ` of ${bytes(limit)}` : ''}`,
              value: peakBytes,
            },
            figure(bytes, peakSpilledBytes),
            `${preciseClock(1000 * fromS)} ${end}${lost}`,
          ],
        };
      },
    ),
  );
  return section(
    'Workers',
    h('p', { class: 'note' }, 'Busy and idle of the time in which there was work.'),
    table.element,
  );
}

const percent = (share: number): string => `${Math.round(100 * share)} %`;

/** A chart, and what fills it once it is on the page. */
interface FilledChart {
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
