import type { PastSeries } from '../../page-messages.ts';
import { Chart } from '../chart.ts';
import { prefixColour } from '../colours.ts';
import { h, section } from '../dom.ts';
import { bytes, percent, perSecond, seconds } from '../format.ts';
import { get } from '../link.ts';
import type { SystemHistory } from '../system-history.ts';
import { type Around, complain, type View } from '../view.ts';

/** Titles and units of the figures over time, in their order. */
const CHARTS: readonly (readonly [title: string, format: (value: number) => string])[] = [
  ['CPU (100 % is one core)', percent],
  ['Memory', bytes],
  ['Event-loop delay', (ms) => seconds(ms / 1000)],
  ['Bandwidth of transfers', perSecond],
  ['Work ahead (occupancy)', seconds],
  ['Spilled to disk', bytes],
];

/** CPU, memory, event loop and transfers of the scheduler and of workers over time. */
export class System implements View {
  private readonly grid = h('div', { class: 'columns' });
  private charts: readonly Chart[] = [];
  private lines = '';
  private lastS = 0;
  readonly element = h('div', {}, this.grid);

  constructor(
    private readonly around: Around,
    private readonly history: SystemHistory,
  ) {
    if (around.past === undefined) return;
    get<PastSeries>('api/history').then(
      (found) => {
        history.fill(found);
        this.rebuild();
      },
      (error: unknown) => complain(around, error),
    );
  }

  update(): void {
    const { lines, samples } = this.history;
    const last = samples.at(-1);
    if (this.around.past !== undefined || last === undefined) return;
    if (lines.join() !== this.lines) this.rebuild();
    else if (last.atS > this.lastS)
      this.charts.forEach((chart, k) => chart.add(last.atS, last.values[k] ?? []));
    this.lastS = last.atS;
  }

  /** Draws all lines anew. */
  private rebuild(): void {
    const { lines, samples } = this.history;
    this.lines = lines.join();
    const isPast = this.around.past !== undefined;
    const isKnown = (k: number, line: number): boolean =>
      samples.some(({ values }) => (values[k]?.[line] ?? null) !== null);
    // Of a scheduler that is gone some figures are not known, and others will not come.
    const shown = CHARTS.map((chart, k) => ({
      ...{ chart, k },
      lines: lines.flatMap((_, line) => (!isPast || isKnown(k, line) ? [line] : [])),
    })).filter(({ lines: { length } }) => length > 0);
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
  }
}
