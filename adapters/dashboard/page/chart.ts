import uPlot from 'uplot';

import { themed } from './colours.ts';
import { h } from './dom.ts';

/** Seconds that are shown. */
const SPAN_S = 300;

/** One line of a chart. */
export interface Series {
  readonly label: string;
  readonly colour: string;
}

/** Lines over the last five minutes. */
export class Chart {
  readonly element = h('div', { class: 'chart' });
  private readonly times: number[] = [];
  private readonly values: number[][];
  private plot: uPlot | undefined;

  constructor(
    private readonly title: string,
    private readonly series: readonly Series[],
    private readonly format: (value: number) => string,
  ) {
    this.values = series.map(() => []);
    this.element.setAttribute('role', 'img');
    new ResizeObserver(() => this.resize()).observe(this.element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  /** Adds a point at the right. */
  add(atS: number, values: readonly number[]): void {
    this.times.push(atS);
    values.forEach((value, k) => this.values[k]?.push(value));
    while ((this.times[0] ?? atS) < atS - SPAN_S) {
      this.times.shift();
      for (const line of this.values) line.shift();
    }
    this.plot ??= this.make();
    this.plot?.setData([this.times, ...this.values]);
    const now = this.series.map(({ label }, k) => `${label} ${this.format(values[k] ?? 0)}`);
    this.element.setAttribute('aria-label', `${this.title}: ${now.join(', ')}`);
  }

  /** For another theme. */
  redraw(): void {
    this.plot?.destroy();
    this.plot = undefined;
  }

  private make(): uPlot | undefined {
    const { clientWidth: width } = this.element;
    if (width === 0) return undefined;
    const axis = {
      stroke: themed('muted'),
      grid: { stroke: themed('line'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    return new uPlot(
      {
        ...{ width, height: 150, cursor: { y: false }, legend: { show: this.series.length > 1 } },
        scales: { y: { range: (_u, _min, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [
          {
            ...axis,
            values: (_u, marks) =>
              marks.map((at) => new Date(at * 1000).toLocaleTimeString('en-GB')),
            space: 80,
          },
          { ...axis, values: (_u, marks) => marks.map((mark) => this.format(mark)), size: 62 },
        ],
        series: [
          {
            value: (_u, at) =>
              !Number.isFinite(at) ? '' : new Date(at * 1000).toLocaleTimeString('en-GB'),
          },
          ...this.series.map(({ label, colour }) => ({
            ...{ label, stroke: colour, width: 2, points: { show: false }, fill: `${colour}22` },
            value: (_u: uPlot, value: number | null) => (value === null ? '–' : this.format(value)),
          })),
        ],
      },
      [this.times, ...this.values],
      this.element,
    );
  }

  private resize(): void {
    const { clientWidth: width } = this.element;
    if (width > 0) this.plot?.setSize({ width, height: 150 });
  }
}
