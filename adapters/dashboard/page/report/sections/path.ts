import type { ReportData } from '../../../../report/report-data.ts';
import { prefixColour } from '../../colours.ts';
import { h, section, Table } from '../../dom.ts';
import { count, seconds } from '../../format.ts';
import { taskLink } from '../../task-link.ts';
import type { StreamSource } from '../../link.ts';
import type { Around } from '../../view.ts';

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
          ...[seconds(queuedS), seconds(waitedS), seconds(transferS), seconds(runS)],
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
