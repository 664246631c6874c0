import type { ReportData } from '../../../../report/report-data.ts';
import { Bar, legend } from '../../bar.ts';
import { prefixColour } from '../../colours.ts';
import { h, section, Table } from '../../dom.ts';
import { bytes, count, seconds } from '../../format.ts';

const KINDS = [
  ['runS', '#009e73', 'running'],
  ['transferS', '#d55e00', 'fetching inputs'],
  ['diskS', '#8c6d1f', 'on disk'],
  ['otherS', '#7f7f7f', 'other work'],
  ['queuedS', '#e69f00', 'queued at the scheduler'],
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
    return { key: name, cells: [name, bar.element, seconds(total)] };
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
    ['prefix', 'runs', 'failed', 'in all', 'half take at most', 'longest', 'fetching', 'results'],
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
          ...[count(one.runs), count(one.failed), seconds(one.runS), seconds(one.medianS)],
          ...[seconds(one.maxS), seconds(one.transferS), bytes(one.resultBytes)],
        ],
      };
    }),
  );
  return section('Tasks by prefix', table.element);
}
