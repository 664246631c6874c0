import type { ReportData } from '../../../../report/report-data.ts';
import { Bar } from '../../bar.ts';
import { h, section, Table } from '../../dom.ts';
import { bytes, count, preciseClock, seconds } from '../../format.ts';

/** The section about the workers. */
export function workerSection({ analysis, history }: ReportData): HTMLElement {
  const titles = ['worker', 'threads', 'runs', 'busy', 'idle', 'fetching', 'memory at most'];
  const table = new Table('Workers', [...titles, 'spilled', 'there'], 'There was none.', '');
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
            ...[count(threads), count(runs), bar.element],
            isMeasured ? `${Math.round(100 * idleShare)} %` : '–',
            seconds(transferS),
            `${bytes(peakBytes)}${limit > 0 ? ` of ${bytes(limit)}` : ''}`,
            bytes(peakSpilledBytes),
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
