import uPlot from 'uplot';

import { themed } from './colours.ts';
import { h } from './dom.ts';
import { bytes, count, percent, perSecond } from './format.ts';

/** Seconds that are shown. */
const SPAN_S = 300;

export interface Series {
  readonly label: string;
  readonly colour: string;
}

/** Steps of an axis: round numbers, whole ones for counts, and of the units of bytes. */
const POWERS = Array.from({ length: 50 }, (_, k) => 2 ** k);
const WHOLE = Array.from({ length: 12 }, (_, k) => [1, 2, 5].map((n) => n * 10 ** k)).flat();
const STEPS: ReadonlyMap<(value: number) => string, number[]> = new Map([
  [bytes, POWERS],
  [perSecond, POWERS],
  [count, WHOLE],
  [percent, WHOLE],
]);

function timeOf(atS: number, isFine: boolean): string {
  const text = new Date(atS * 1000).toLocaleTimeString('en-GB');
  return isFine ? `${text}${(atS % 1).toFixed(1).slice(1)}` : text;
}

/** Lines over the last five minutes. */
export class Chart {
  readonly element = h('div', { class: 'chart' });
  private readonly times: number[] = [];
  private readonly values: (number | null)[][];
  private plot: uPlot | undefined;
  private isWhole = false;

  constructor(
    private readonly title: string,
    private readonly series: readonly Series[],
    private readonly format: (value: number) => string,
  ) {
    this.values = series.map(() => []);
    this.element.setAttribute('role', 'img');
    this.element.setAttribute('aria-label', `${title}: nothing yet`);
    new ResizeObserver(() => this.resize()).observe(this.element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  /** Adds a point at the right. */
  add(atS: number, values: readonly (number | null)[]): void {
    this.times.push(atS);
    values.forEach((value, k) => this.values[k]?.push(value));
    while ((this.times[0] ?? atS) < atS - SPAN_S) {
      this.times.shift();
      for (const line of this.values) line.shift();
    }
    this.plot ??= this.make();
    this.plot?.setData([this.times, ...this.values]);
    const now = this.series.map(({ label }, k) => `${label} ${this.text(values[k])}`);
    this.element.setAttribute('aria-label', `${this.title}: ${now.join(', ')}`);
  }

  /**
   * Shows these points.
   * @param isWhole - there will be no others
   */
  showAll(
    times: readonly number[],
    lines: readonly (readonly (number | null)[])[],
    isWhole = true,
  ): void {
    this.isWhole = isWhole;
    this.times.push(...times);
    lines.forEach((line, k) => this.values[k]?.push(...line));
    this.plot ??= this.make();
    const peaks = this.series.map(({ label }, k) => {
      return `${label} ${this.format((lines[k] ?? []).reduce<number>((a, b) => Math.max(a, b ?? 0), 0))}`;
    });
    this.element.setAttribute('aria-label', `${this.title}, at most: ${peaks.join(', ')}`);
  }

  /** Marks a moment, whose values the legend shows. */
  point(atS: number): void {
    const { plot } = this;
    plot?.setCursor({ left: plot.valToPos(atS, 'x'), top: 0 });
  }

  private text(value: number | null | undefined): string {
    return typeof value === 'number' ? this.format(value) : '–';
  }

  /** For another theme. */
  redraw(): void {
    this.plot?.destroy();
    this.plot = this.isWhole ? this.make() : undefined;
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
    const hasNames = this.series.length > 1 || (this.series[0]?.label.includes(':') ?? false);
    return new uPlot(
      {
        ...{ width, height: 150, cursor: { y: false }, legend: { show: hasNames } },
        scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          {
            ...{ ...axis, size: 28 },
            values: (_u, marks) =>
              marks.map((at) => timeOf(at, (marks[1] ?? at + 1) - (marks[0] ?? at) < 1)),
            space: 80,
          },
          {
            ...{ ...axis, size: 72, incrs: STEPS.get(this.format) },
            values: (_u, marks) => marks.map((mark) => this.format(mark)),
          },
        ],
        series: [
          {
            value: (_u, at, _k, index) =>
              timeOf(index === null ? (this.times.at(-1) ?? 0) : at, this.isWhole),
          },
          // Without a cursor the legend tells the newest values.
          ...this.series.map(({ label, colour }, k) => ({
            ...{ label, stroke: colour, width: 2, points: { show: false }, fill: `${colour}22` },
            value: (_u: uPlot, at: number | null, _k: number, index: number | null) =>
              this.text(index === null ? this.values[k]?.at(-1) : at),
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
