import type { BandwidthsAnswer, PastSeries } from '../../page-messages.ts';
import { Chart } from '../chart.ts';
import { prefixColour } from '../colours.ts';
import { BandwidthTables } from '../bandwidth-tables.ts';
import { h, section } from '../dom.ts';
import { bytes, count, percent, perSecond, seconds } from '../format.ts';
import { get } from '../link.ts';
import type { SystemHistory } from '../system-history.ts';
import { poll } from '../task-link.ts';
import { type Around, complain, type View } from '../view.ts';

/** Titles and units of the figures over time, in their order. */
const CHARTS: readonly (readonly [title: string, format: (value: number) => string])[] = [
  ['CPU (100 % is one core)', percent],
  ['Memory', bytes],
  ['Event-loop delay', (ms) => seconds(ms / 1000)],
  ['Bandwidth of transfers', perSecond],
  ['Work ahead (occupancy)', seconds],
  ['Spilled to disk', bytes],
  ['Network: received', perSecond],
  ['Network: sent', perSecond],
  ['Disk: written', perSecond],
  ['Disk: read', perSecond],
];

const MOVES = 'Copies and drops of results by policy';
const NOTE =
  'Network and disk count the results that a worker moves; those of a worker of Dask are of its whole machine.';

/** CPU, memory, event loop, network and disk of the scheduler and of workers over time, and bandwidths. */
export class System implements View {
  private readonly grid = h('div', { class: 'columns' });
  private readonly note = h('p', { class: 'note' }, NOTE);
  private readonly bandwidths = new BandwidthTables();
  private charts: readonly Chart[] = [];
  private moves: Chart | undefined;
  private lines = '';
  private lastS = 0;
  readonly leave: () => void = () => undefined;
  readonly element: HTMLElement;

  constructor(
    private readonly around: Around,
    private readonly history: SystemHistory,
  ) {
    this.element = h('div', {}, this.note, this.grid, this.bandwidths.element);
    if (around.past === undefined) {
      this.leave = poll(around, 2000, () => this.showBandwidths());
      return;
    }
    Promise.all([get<PastSeries>('api/history'), this.showBandwidths()]).then(
      ([found]) => {
        history.fill(found);
        this.rebuild();
      },
      (error: unknown) => complain(around, error),
    );
  }

  update(): void {
    const { samples } = this.history;
    const last = samples.at(-1);
    if (this.around.past !== undefined || last === undefined) return;
    if (this.names !== this.lines) this.rebuild();
    else if (last.atS > this.lastS) {
      this.charts.forEach((chart, k) => chart.add(last.atS, last.values[k] ?? []));
      this.moves?.add(last.atS, this.history.movedIn(samples.length - 1));
    }
    this.lastS = last.atS;
  }

  private get names(): string {
    return [...this.history.lines, ...this.history.moves].join();
  }

  private async showBandwidths(): Promise<void> {
    this.bandwidths.show(await get<BandwidthsAnswer>('api/bandwidths'));
  }

  /** Draws all lines anew. */
  private rebuild(): void {
    const { lines, samples } = this.history;
    this.lines = this.names;
    const isPast = this.around.past !== undefined;
    const isKnown = (k: number, line: number): boolean =>
      samples.some(({ values }) => (values[k]?.[line] ?? null) !== null);
    // Of a scheduler that is gone some figures are not known, and others will not come.
    const shown = CHARTS.map((chart, k) => ({
      ...{ chart, k },
      lines: lines.flatMap((_, line) => (!isPast || isKnown(k, line) ? [line] : [])),
    })).filter(({ lines: { length } }) => length > 0);
    this.note.hidden = !shown.some(({ chart: [title] }) => title.startsWith('Network'));
    const series = lines.map((label, k) => ({ label, colour: prefixColour(k) }));
    this.charts = shown.map(({ chart: [title, format], lines: of }) => {
      return new Chart(
        title,
        series.filter((_, line) => of.includes(line)),
        format,
      );
    });
    const times = samples.map(({ atS }) => atS);
    this.grid.replaceChildren(
      ...this.charts.map(({ element }, n) => section(shown[n]?.chart[0] ?? '', element)),
    );
    this.charts.forEach((chart, n) => {
      const { k = 0, lines: of = [] } = shown[n] ?? {};
      const values = of.map((line) => samples.map(({ values: at }) => at[k]?.[line] ?? null));
      chart.showAll(times, values, isPast);
    });
    const { moves } = this.history;
    this.moves = undefined;
    if (moves.length === 0) return;
    const ofMoves = moves.map((move, k) => ({ label: move.join(': '), colour: prefixColour(k) }));
    this.moves = new Chart(MOVES, ofMoves, count);
    this.grid.append(section(MOVES, this.moves.element));
    const moved = times.map((_, at) => this.history.movedIn(at));
    this.moves.showAll(
      times,
      moves.map((_, line) => moved.map((values) => values[line] ?? 0)),
      isPast,
    );
  }
}
