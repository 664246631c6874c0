import { countOf } from '../../../../core/util/values.ts';
import { ACTION_COLOURS, prefixColour, themed } from '../colours.ts';
import { button, figure, h, on, section, setText, Table } from '../dom.ts';
import { clock, count, preciseClock, seconds } from '../format.ts';
import { type Bin, fromColumns, type Span, type StreamWindow } from '../../page-messages.ts';
import type { StreamPart, StreamSource } from '../link.ts';
import { poll } from '../task-link.ts';
import type { Around, View } from '../view.ts';

const LIVE_S = 30;

/** Height of the times below the rows, and width of the names beside them, in pixels. */
const AXIS = 22;
const LEFT = 110;

/** Bytes each millisecond that a live page asks for, at most. */
const RATE_MAX = 150;

/** The task stream: what every thread did, over time. */
export class Stream implements View {
  private readonly canvas = h('canvas', {
    ...{ tabindex: 0, role: 'img', 'aria-label': 'Task stream' },
    'aria-describedby': 'stream-help',
  });
  private readonly tip = h('div', { class: 'tip', hidden: true });
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly live = button('Live', () => this.goLive(), { 'aria-pressed': 'true' });
  private readonly table = new Table(
    'Work in this window',
    ['prefix', 'tasks', 'busy'],
    'Nothing ran in this window.',
  );
  private readonly key = h('ul', { class: 'legend' });
  private window = { fromS: 0, toS: 0 };
  /** Numbers of the rows as they are drawn, from top to bottom. */
  private order: readonly number[] = [];
  private shown: StreamPart | undefined;
  private spans: readonly Span[] = [];
  /** Undefined when each span is shown. */
  private bins: readonly Bin[] | undefined;
  private isLive = true;
  private wantedAt = 0;
  private readonly stop: () => void;
  private readonly resized = new ResizeObserver(() => this.resize());
  readonly element: HTMLElement;

  /** @param past - the time that is shown first of work that is over; default: live */
  constructor(
    private readonly around: Around<StreamSource>,
    past?: { readonly fromS: number; readonly toS: number },
  ) {
    if (past !== undefined) {
      this.isLive = false;
      this.window = { ...past };
    }
    const bar = h(
      'div',
      { class: 'toolbar', role: 'toolbar', 'aria-label': 'Time window' },
      past === undefined && this.live,
      button('All', () => this.showAll()),
      button('Zoom in', () => this.zoom(0.5)),
      button('Zoom out', () => this.zoom(2)),
      button('Earlier', () => this.pan(-0.3)),
      button('Later', () => this.pan(0.3)),
    );
    const keys = 'Wheel or + and − zoom, drag or arrows move';
    const help =
      past === undefined
        ? `${keys}, L follows, Home shows all. Click a task for its story.`
        : `${keys}, Home shows all.${around.past === undefined ? '' : ' Click a task for its story.'}`;
    this.element = section(
      'Task stream',
      bar,
      h('p', { id: 'stream-help', class: 'note' }, help),
      this.key,
      h('div', { class: 'plot' }, this.canvas, this.tip),
      this.note,
      this.table.element,
    );
    this.listen();
    this.resized.observe(this.canvas);
    this.stop = poll(around, past === undefined ? 500 : 60_000, () => this.refresh());
  }

  leave(): void {
    this.stop();
    this.resized.disconnect();
  }

  private listen(): void {
    let drag: { x: number; fromS: number; toS: number; moved: boolean } | undefined;
    on(this.canvas, {
      wheel: (event) => {
        event.preventDefault();
        const { deltaY, offsetX } = event as WheelEvent;
        this.zoom(deltaY > 0 ? 1.25 : 0.8, this.timeAt(offsetX));
      },
      pointerdown: (event) => {
        const { clientX, pointerId } = event as PointerEvent;
        this.canvas.setPointerCapture(pointerId);
        drag = { x: clientX, ...this.window, moved: false };
      },
      pointermove: (event) => {
        const { clientX } = event as PointerEvent;
        if (drag === undefined) this.hover(event as PointerEvent);
        else if (drag.moved || Math.abs(clientX - drag.x) > 4) {
          drag.moved = true;
          const shift = ((drag.x - clientX) / this.plotWidth) * (drag.toS - drag.fromS);
          this.look(drag.fromS + shift, drag.toS + shift);
        }
      },
      pointerup: (event) => {
        const span = drag?.moved === false ? this.spanAt(event as PointerEvent) : undefined;
        drag = undefined;
        if (span !== undefined) this.around.showTask(span.key);
      },
      pointerleave: () => (this.tip.hidden = true),
      keydown: (event) => this.press(event as KeyboardEvent),
    });
  }

  private press(event: KeyboardEvent): void {
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      '+': () => this.zoom(0.5),
      '=': () => this.zoom(0.5),
      '-': () => this.zoom(2),
      l: () => this.goLive(),
      Home: () => this.showAll(),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }

  private get plotWidth(): number {
    return Math.max(50, this.canvas.clientWidth - LEFT);
  }

  private timeAt(x: number): number {
    const { fromS, toS } = this.window;
    return fromS + ((x - LEFT) / this.plotWidth) * (toS - fromS);
  }

  private goLive(): void {
    this.isLive = true;
    this.live.setAttribute('aria-pressed', 'true');
    this.wantedAt = 0;
  }

  private showAll(): void {
    const range = this.shown?.range ?? undefined;
    if (range !== undefined) this.look(range.fromS - 0.01, range.toS + 0.01);
  }

  private pan(share: number): void {
    const { fromS, toS } = this.window;
    const shift = share * (toS - fromS);
    this.look(fromS + shift, toS + shift);
  }

  private zoom(factor: number, aroundS = (this.window.fromS + this.window.toS) / 2): void {
    const { fromS, toS } = this.window;
    if ((toS - fromS) * factor < 0.0005) return;
    this.look(aroundS - (aroundS - fromS) * factor, aroundS + (toS - aroundS) * factor);
  }

  private look(fromS: number, toS: number): void {
    this.tip.hidden = true;
    this.isLive = false;
    this.live.setAttribute('aria-pressed', 'false');
    this.window = { fromS, toS };
    this.draw();
    const at = ++this.wantedAt;
    setTimeout(() => {
      if (at === this.wantedAt) void this.refresh();
    }, 60);
  }

  private async refresh(): Promise<void> {
    const { link } = this.around;
    const { nowS } = link.state;
    if (nowS === 0 || this.canvas.clientWidth === 0) return;
    if (this.isLive) this.window = this.liveWindow(nowS);
    const { fromS, toS } = this.window;
    const found = await Promise.race([
      link.stream(fromS, toS, this.plotWidth),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 5000)),
    ]);
    if (found === undefined) return;
    const answer = this.isLive ? { ...found, rows: this.withIdle(found.rows) } : found;
    this.shown = answer;
    this.spans = answer.spans === undefined ? [] : fromColumns(answer.spans);
    this.bins = answer.bins === undefined ? undefined : fromColumns(answer.bins);
    this.order = orderOf(answer);
    this.draw();
    this.describe(answer);
    if (this.isLive) await pause(sizeOf(answer) / RATE_MAX);
  }

  /** The rows, and one of each worker that is there and has done nothing. */
  private withIdle(rows: StreamPart['rows']): StreamPart['rows'] {
    const known = new Set(rows.map(({ worker }) => worker));
    const idle = [...this.around.link.state.workers.keys()].filter((worker) => !known.has(worker));
    return [...rows, ...idle.map((worker) => ({ worker, lane: 0 }))];
  }

  /** The last half minute; when nothing ran in it, the time in which something did. */
  private liveWindow(nowS: number): { fromS: number; toS: number } {
    const range = this.shown?.range ?? undefined;
    const endS = range !== undefined && range.toS < nowS - LIVE_S / 2 ? range.toS + 1 : nowS;
    return { fromS: endS - LIVE_S, toS: endS };
  }

  private describe({ sinceS, count: actions, dropped, running }: StreamPart): void {
    const { spans, bins } = this;
    const parts = [
      ...this.waitingText(running),
      `Recording since ${clock(sinceS)}; ${countOf(actions + spans.filter((span) => this.isRunning(span)).length, 'action')} in this window.`,
    ];
    if (bins !== undefined)
      parts.push('Each pixel shows the longest of its tasks: zoom in to see each one.');
    if (dropped > 0)
      parts.push(
        `${countOf(dropped, 'older action is', 'older actions are')} not remembered any more: see the option history.`,
      );
    setText(this.note, parts.join(' '));
    const names = this.names();
    const sums = new Map<number, { tasks: number; ms: number }>();
    const spanMs = 1000 * (this.window.toS - this.window.fromS);
    for (const span of spans) {
      const { prefix, action, startMs, stopMs } = span;
      const sum = sums.get(prefix) ?? { tasks: 0, ms: 0 };
      sums.set(prefix, sum);
      if (action !== 0 && !this.isRunning(span)) continue;
      sum.tasks++;
      sum.ms += Math.max(0, Math.min(stopMs, spanMs) - Math.max(startMs, 0));
    }
    for (const { prefix, busyPercent } of bins ?? []) {
      const sum = sums.get(prefix) ?? { tasks: 0, ms: 0 };
      sums.set(prefix, sum);
      sum.ms += (busyPercent / 100) * (this.shown?.binMs ?? 0);
    }
    const rows = [...sums].toSorted(([a], [b]) => a - b);
    this.table.show(
      rows.map(([prefix, { tasks, ms }]) => ({
        key: String(prefix),
        cells: [
          names.get(prefix) ?? String(prefix),
          bins === undefined ? tasks : '–',
          figure(seconds, ms / 1000),
        ],
      })),
    );
    const shownKey = [...rows.map(([prefix]) => String(prefix)), 'transfer', 'disk'].join();
    if (this.key.dataset['shown'] === shownKey) return;
    this.key.dataset['shown'] = shownKey;
    this.key.replaceChildren(
      ...rows.map(([prefix]) => this.entry(prefixColour(prefix), names.get(prefix) ?? '')),
      this.entry(ACTION_COLOURS['transfer'] ?? '', 'transfer (thin)'),
      this.entry(ACTION_COLOURS['disk-read'] ?? '', 'disk (thin)'),
    );
  }

  /** A sentence about tasks that have not ended, of which only those that run are drawn. */
  private waitingText(running: number | undefined): string[] {
    if (running === undefined) return [];
    let [processing, queued] = [0, 0];
    for (const row of this.around.link.state.prefixes.values()) {
      processing += row.processing ?? 0;
      queued += row.queued ?? 0;
    }
    const waiting = count(Math.max(0, processing - running));
    return [
      `Now ${count(running)} run (pale, with a frame), ${waiting} wait at workers and ${count(queued)} at the scheduler.`,
    ];
  }

  private entry(colour: string, text: string): HTMLElement {
    const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
    mark.style.background = colour;
    return h('li', {}, mark, text);
  }

  private names(): Map<number, string> {
    return new Map(
      [...this.around.link.state.prefixes.values()].map(({ name, number }) => [number, name]),
    );
  }

  private get rowHeight(): number {
    const rows = this.shown?.rows.length ?? 0;
    return Math.max(3, Math.min(24, Math.floor(520 / Math.max(1, rows))));
  }

  private resize(): void {
    if (this.shown === undefined) void this.refresh();
    else this.draw();
  }

  /** Again, for another theme. */
  draw(): void {
    const { canvas, shown } = this;
    const context = canvas.getContext('2d');
    if (context === null) return;
    const { order, rowHeight } = this;
    const [width, height] = [canvas.clientWidth, Math.max(120, order.length * rowHeight + AXIS)];
    const scale = devicePixelRatio;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.scale(scale, scale);
    context.clearRect(0, 0, width, height);
    const plot = { context, width, height, ...this.window };
    drawTimes(plot);
    if (this.around.past !== undefined) drawMoment(plot, this.around.link.state.nowS);
    this.drawNames(context);
    if (shown === undefined) return;
    const place = new Map(order.map((row, index) => [row, index]));
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT, height);
    context.clip();
    const { fromS, toS } = this.window;
    const x = (ms: number): number =>
      LEFT + ((shown.fromS - fromS + ms / 1000) / (toS - fromS)) * (width - LEFT);
    for (const span of this.spans) {
      const top = (place.get(span.row) ?? 0) * rowHeight;
      const [left, right] = [x(span.startMs), x(span.stopMs)];
      this.drawSpan(context, span, { left, right, top, height: rowHeight });
    }
    for (const { row, bin, prefix, busyPercent, hasError } of this.bins ?? []) {
      const binMs = shown.binMs ?? 0;
      const top = (place.get(row) ?? 0) * rowHeight;
      const filled = Math.max(1, ((rowHeight - 1) * busyPercent) / 100);
      context.fillStyle = prefixColour(prefix);
      const left = x(bin * binMs);
      const wide = Math.max(1, x((bin + 1) * binMs) - left);
      context.fillRect(left, top + rowHeight - 1 - filled, wide, filled);
      if (!hasError) continue;
      context.fillStyle = themed('text');
      context.fillRect(left, top, wide, Math.min(3, rowHeight));
    }
    context.restore();
  }

  private drawSpan(
    context: CanvasRenderingContext2D,
    span: Span,
    { left, right, top, height }: { left: number; right: number; top: number; height: number },
  ): void {
    const { prefix, action, isError } = span;
    const wide = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
    if (this.isRunning(span)) {
      context.strokeStyle = context.fillStyle = prefixColour(prefix);
      context.lineWidth = 1;
      context.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - left - 1), height - 2);
      context.globalAlpha = 0.35;
      context.fillRect(left, top, wide, height - 1);
      context.globalAlpha = 1;
      return;
    }
    if (action !== 0) {
      const name = this.shown?.actions[action] ?? 'other';
      context.fillStyle = ACTION_COLOURS[name] ?? '#7f7f7f';
      const thin = Math.max(1, Math.floor(height / 3));
      context.fillRect(left, top + height - 1 - thin, wide, thin);
      return;
    }
    context.fillStyle = prefixColour(prefix);
    context.fillRect(left, top, wide, height - 1);
    if (!isError) return;
    context.strokeStyle = themed('text');
    context.lineWidth = 2;
    context.strokeRect(left + 1, top + 1, Math.max(2, wide - 2), Math.max(1, height - 3));
  }

  private drawNames(context: CanvasRenderingContext2D): void {
    context.fillStyle = themed('muted');
    context.textAlign = 'left';
    const { rowHeight } = this;
    let last = '';
    this.order.forEach((row, index) => {
      const { worker = '' } = this.shown?.rows[row] ?? {};
      if (worker === last) return;
      last = worker;
      context.fillText(
        this.workerOf(row).slice(-17),
        2,
        index * rowHeight + Math.max(6, rowHeight / 2),
      );
    });
  }

  /** The name of the worker of a row, also of one that has left. */
  private workerOf(row: number): string {
    const { worker = '', name = '' } = this.shown?.rows[row] ?? {};
    return this.around.link.state.workers.get(worker)?.name ?? (name || worker);
  }

  private spanAt({ offsetX, offsetY }: PointerEvent): Span | undefined {
    const { shown } = this;
    if (shown === undefined || offsetX < LEFT) return undefined;
    const row = this.order[Math.floor(offsetY / this.rowHeight)];
    const ms = (this.timeAt(offsetX) - shown.fromS) * 1000;
    const slack = ((this.window.toS - this.window.fromS) * 2000) / this.plotWidth;
    return this.spans.findLast(
      (span) =>
        span.row === row &&
        span.startMs - slack <= ms &&
        ms <= span.stopMs + slack &&
        (span.action === 0 || this.isRunning(span)),
    );
  }

  private isRunning({ action }: Span): boolean {
    return this.shown?.actions[action] === 'running';
  }

  private hover(event: PointerEvent): void {
    const span = this.spanAt(event);
    this.tip.hidden = span === undefined;
    if (span === undefined) return;
    const start = preciseClock(1000 * (this.shown?.fromS ?? 0) + span.startMs);
    setText(
      this.tip,
      `${span.key} · ${this.isRunning(span) ? 'runs for ' : ''}${seconds((span.stopMs - span.startMs) / 1000)} from ${start} on ${this.workerOf(span.row)}${span.isError ? ' · failed' : ''}`,
    );
    this.tip.style.left = `${Math.min(event.offsetX + 12, this.canvas.clientWidth - 220)}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }
}

/** The canvas of a task stream, and the time that it shows. */
interface StreamPlot {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  readonly fromS: number;
  readonly toS: number;
}

/** Vertical lines at round times, with these below. */
function drawTimes({ context, width, height, fromS, toS }: StreamPlot): void {
  context.font = '11px system-ui, sans-serif';
  context.fillStyle = themed('muted');
  context.strokeStyle = themed('line');
  context.textBaseline = 'middle';
  const spanS = toS - fromS;
  if (spanS <= 0) return;
  const rough = spanS / Math.max(2, Math.floor((width - LEFT) / 110));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough) ?? rough;
  const digits = Math.min(4, Math.ceil(-Math.log10(step)));
  for (let at = Math.ceil(fromS / step) * step; at < toS; at += step) {
    const x = LEFT + ((at - fromS) / spanS) * (width - LEFT);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS);
    context.stroke();
    const fraction = step < 1 ? (at % 1).toFixed(digits).slice(1) : '';
    context.textAlign = x > width - 40 ? 'right' : 'center';
    context.fillText(`${clock(at)}${fraction}`, x, height - AXIS / 2);
  }
}

/** A line at the moment that the other pages show. */
function drawMoment(plot: StreamPlot, atS: number): void {
  const { context, width, height, fromS, toS } = plot;
  const x = LEFT + ((atS - fromS) / (toS - fromS)) * (width - LEFT);
  if (x < LEFT) return;
  context.strokeStyle = themed('text');
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height - AXIS);
  context.stroke();
}

/** Numbers of the rows by worker, then by thread. */
function orderOf({ rows }: StreamWindow): readonly number[] {
  const numbered = rows.map(({ worker, lane }, row) => ({ worker, lane, row }));
  const byName = new Intl.Collator().compare;
  return numbered
    .toSorted((a, b) => byName(a.worker, b.worker) || a.lane - b.lane)
    .map(({ row }) => row);
}

/** Bytes of an answer, about. */
function sizeOf({ rows, spans, bins }: StreamWindow): number {
  const [spanCount, binCount] = [spans?.row?.length ?? 0, bins?.row?.length ?? 0];
  return 50 * rows.length + 60 * spanCount + 24 * binCount;
}

/** Resolves after so many milliseconds. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
