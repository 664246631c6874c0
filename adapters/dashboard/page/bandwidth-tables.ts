import type { BandwidthsAnswer } from '../page-messages.ts';
import { figure, h, section, Table } from './dom.ts';
import { perSecond } from './format.ts';

const EMPTY = 'No large transfer was seen; a live page sees those since a page was opened.';

/** Bandwidth by pair of workers and by type of result, the slowest first. */
export class BandwidthTables {
  private readonly pairs = new Table(
    'Bandwidth between workers',
    ['from', 'to', 'bandwidth'],
    EMPTY,
  );
  private readonly types = new Table('Bandwidth by type of result', ['type', 'bandwidth'], EMPTY);
  readonly element = h(
    'div',
    { class: 'columns' },
    section('Bandwidth between workers', this.pairs.element),
    section('Bandwidth by type of result', this.types.element),
  );

  show({ pairs, types }: BandwidthsAnswer): void {
    this.pairs.show(
      pairs.map(({ from, fromName, to, toName, bandwidth }) => ({
        key: `${from} ${to}`,
        cells: [fromName, toName, figure(perSecond, bandwidth)],
      })),
    );
    this.types.show(
      types.map(({ type, bandwidth }) => ({
        key: type,
        cells: [type, figure(perSecond, bandwidth)],
      })),
    );
  }
}
