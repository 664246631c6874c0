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
    const series = lines.map((label, k) => ({ label, colour: prefixColour(k) }));
    this.charts = CHARTS.map(([title, format]) => new Chart(title, series, format));
    const times = samples.map(({ atS }) => atS);
    const sections = this.charts.map(({ element }, k) => section(CHARTS[k]?.[0] ?? '', element));
    this.grid.replaceChildren(...sections);
    this.charts.forEach((chart, k) =>
      chart.showAll(
        times,
        lines.map((_, line) => samples.map(({ values }) => values[k]?.[line] ?? null)),
        this.around.past !== undefined,
      ),
    );
  }
}
