import { countOf } from '../../../../core/util/values.ts';
import { stateColour, STATES, themed } from '../colours.ts';
import { legend } from '../bar.ts';
import { button, h, on, section, setText } from '../dom.ts';
import { count } from '../format.ts';
import type { GraphAnswer, TasksByState } from '../../page-messages.ts';
import { get } from '../link.ts';
import { poll } from '../task-link.ts';
import { type Around, complain, type View } from '../view.ts';

/** Pixels between two neighbours of a graph that is fitted, at most: of tasks, and of groups, whose names stand below. */
const FIT_MAX = 24;
const FIT_GROUPS_MAX = 80;

/** The ratio of width to height of a graph. */
const WIDE = 2.6;

/** The opacity of what does not fit the search. */
const FAINT = 0.15;

/** A place in units of the distance between two nodes. */
interface Point {
  readonly x: number;
  readonly y: number;
}

/** Tasks and what they need, from left to right. */
export class Graph implements View {
  private readonly canvas = h('canvas', {
    tabindex: 0,
    role: 'img',
    'aria-label': 'Graph of tasks',
  });
  private readonly filter = h('input', {
    ...{ id: 'graph-filter', type: 'search', autocomplete: 'off' },
  });
  private readonly state = h('select', { id: 'graph-state' });
  private readonly found = h('p', { class: 'note', role: 'status' });
  private readonly note = h('p', { class: 'note', role: 'status' });
  private readonly tip = h('div', { class: 'tip', hidden: true });
  private answer: GraphAnswer | undefined;
  private shape = '';
  private points: readonly Point[] = [];
  private view = { x: 0, y: 0, scale: 1 };
  /** True when the reader has chosen what is seen: a graph that grows is fitted no more. */
  private isMoved = false;
  /** The group or prefix whose tasks are shown; '': all. */
  private opened = '';
  private readonly whole = button('Whole graph', () => this.open(''), { hidden: true });
  private readonly refresh: () => Promise<void>;
  private readonly stop: () => void;
  private readonly resized = new ResizeObserver(() => (this.isMoved ? this.draw() : this.fit()));
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    const bar = h(
      'div',
      { class: 'toolbar', role: 'toolbar', 'aria-label': 'Graph' },
      button('Fit', () => this.fit()),
      button('Zoom in', () => this.zoom(1.4)),
      button('Zoom out', () => this.zoom(1 / 1.4)),
    );
    const plot = h('div', { class: 'plot tall' }, this.canvas, this.tip);
    this.state.append(h('option', { value: '' }, 'any state'));
    for (const [state] of STATES) this.state.append(h('option', { value: state }, state));
    for (const field of [this.filter, this.state]) on(field, { input: () => this.draw() });
    bar.append(
      this.whole,
      h('label', { for: 'graph-filter' }, 'Search'),
      this.filter,
      h('label', { for: 'graph-state' }, 'State'),
      this.state,
    );
    this.element = section('Graph', bar, legend(STATES), plot, this.note, this.found);
    this.listen();
    this.resized.observe(this.canvas);
    this.refresh = async () => {
      this.show(await get<GraphAnswer>('api/graph', { name: this.opened }));
    };
    this.stop = poll(around, 1000, this.refresh);
  }

  leave(): void {
    this.stop();
    this.resized.disconnect();
  }

  private show(answer: GraphAnswer): void {
    this.answer = answer;
    const { nodes, edges, kind, total } = answer;
    const shape = JSON.stringify([nodes.map(({ name }) => name), edges]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.points = layered(nodes.length, edges);
      if (!this.isMoved) this.fit();
    }
    const what =
      kind === 'tasks'
        ? `${countOf(total, 'task')} with all dependencies.`
        : `${count(total)} tasks, drawn as ${count(nodes.length)} ${kind}: a circle is as large as it has tasks.`;
    const none =
      this.around.past === undefined
        ? 'There are no tasks now.'
        : 'There are no tasks at this moment: move the slider.';
    setText(this.note, total === 0 ? none : what);
    this.draw();
  }

  /** Shows the tasks of a group or prefix with their neighbours; '': the whole graph. */
  private open(name: string): void {
    this.opened = name;
    this.whole.hidden = name === '';
    this.isMoved = false;
    this.refresh().catch((error: unknown) => complain(this.around, error));
  }

  private fit(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const right = Math.max(1, ...this.points.map(({ x }) => x));
    const bottom = Math.max(1, ...this.points.map(({ y }) => y));
    const most = this.answer?.kind === 'tasks' ? FIT_MAX : FIT_GROUPS_MAX;
    const scale = Math.min(most, (width - 60) / (right + 1), (height - 40) / (bottom + 1));
    this.view = { scale, x: 30, y: (height - bottom * scale) / 2 };
    this.isMoved = false;
    this.draw();
  }

  private zoom(
    factor: number,
    x = this.canvas.clientWidth / 2,
    y = this.canvas.clientHeight / 2,
  ): void {
    const { view } = this;
    view.x = x - (x - view.x) * factor;
    view.y = y - (y - view.y) * factor;
    view.scale *= factor;
    this.isMoved = true;
    this.tip.hidden = true;
    this.draw();
  }

  private listen(): void {
    let drag: { x: number; y: number; moved: boolean } | undefined;
    on(this.canvas, {
      wheel: (event) => {
        event.preventDefault();
        const { deltaY, offsetX, offsetY } = event as WheelEvent;
        this.zoom(deltaY > 0 ? 0.85 : 1.18, offsetX, offsetY);
      },
      pointerdown: (event) => {
        const { clientX: x, clientY: y, pointerId } = event as PointerEvent;
        this.canvas.setPointerCapture(pointerId);
        drag = { x, y, moved: false };
      },
      pointermove: (event) => {
        const { clientX: x, clientY: y } = event as PointerEvent;
        if (drag === undefined) {
          this.hover(event as PointerEvent);
          return;
        }
        if (!drag.moved && Math.abs(x - drag.x) + Math.abs(y - drag.y) < 4) return;
        this.view.x += x - drag.x;
        this.view.y += y - drag.y;
        drag = { x, y, moved: true };
        this.isMoved = true;
        this.draw();
      },
      pointerup: (event) => {
        const name = drag?.moved === false ? this.nodeAt(event as PointerEvent) : undefined;
        drag = undefined;
        if (name === undefined) return;
        if (this.answer?.kind === 'tasks') this.around.showTask(name);
        else this.open(name);
      },
      pointerleave: () => (this.tip.hidden = true),
      keydown: (event) => {
        const { key } = event as KeyboardEvent;
        if (key === '+' || key === '=') this.zoom(1.4);
        else if (key === '-') this.zoom(1 / 1.4);
        else if (key === 'Home') this.fit();
        else if (key.startsWith('Arrow')) {
          this.view.x += key === 'ArrowLeft' ? 40 : key === 'ArrowRight' ? -40 : 0;
          this.isMoved = true;
          this.view.y += key === 'ArrowUp' ? 40 : key === 'ArrowDown' ? -40 : 0;
          this.draw();
        } else return;
        event.preventDefault();
      },
    });
  }

  private radius(index: number): number {
    const states = this.answer?.nodes[index]?.states ?? {};
    const tasks = Object.values(states).reduce((sum, n) => sum + n, 0);
    const unit = Math.min(9, Math.max(2.5, this.view.scale * 0.36));
    if (this.answer?.kind === 'tasks') return unit;
    // Neighbours do not touch.
    return Math.min(26, 6 + 3 * Math.log2(1 + tasks), Math.max(3, 0.45 * this.view.scale));
  }

  private draw(): void {
    const { canvas, answer, view, points } = this;
    const context = canvas.getContext('2d');
    if (context === null) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    context.scale(devicePixelRatio, devicePixelRatio);
    if (answer === undefined) return;
    const at = (index: number): Point => {
      const { x, y } = points[index] ?? { x: 0, y: 0 };
      return { x: view.x + x * view.scale, y: view.y + y * view.scale };
    };
    context.strokeStyle = themed('edge');
    context.lineWidth = 1;
    context.beginPath();
    const fits = answer.nodes.map((node) => this.fits(node));
    const count = fits.filter(Boolean).length;
    const isPart = count < fits.length;
    setText(
      this.found,
      isPart ? `${count} of ${fits.length} fit the search; the others are faint.` : '',
    );
    context.globalAlpha = isPart ? FAINT : 1;
    for (const { from, to } of answer.edges) {
      const [a, b] = [at(from), at(to)];
      context.moveTo(a.x, a.y);
      context.bezierCurveTo((a.x + b.x) / 2, a.y, (a.x + b.x) / 2, b.y, b.x, b.y);
    }
    context.stroke();
    answer.nodes.forEach(({ name, states }, index) => {
      context.globalAlpha = fits[index] === true ? 1 : FAINT;
      this.drawNode(context, { ...at(index), index, name, states });
    });
    context.globalAlpha = 1;
  }

  /** True when a node has what is searched for in its name, and a task in the wanted state. */
  private fits({ name, states }: GraphAnswer['nodes'][number]): boolean {
    const state = this.state.value;
    const isWanted = state === '' || (states[state] ?? 0) > 0;
    return isWanted && name.toLowerCase().includes(this.filter.value.toLowerCase());
  }

  private drawNode(
    context: CanvasRenderingContext2D,
    node: Point & {
      readonly index: number;
      readonly name: string;
      readonly states: TasksByState;
    },
  ): void {
    const { x, y, index, name, states } = node;
    const radius = this.radius(index);
    const total = Object.values(states).reduce((sum, n) => sum + n, 0);
    let angle = -Math.PI / 2;
    for (const [state, tasks] of Object.entries(states)) {
      const end = angle + (2 * Math.PI * tasks) / total;
      context.fillStyle = stateColour(state);
      context.beginPath();
      context.moveTo(x, y);
      context.arc(x, y, radius, angle, end);
      context.fill();
      angle = end;
      if (state !== 'erred') continue;
      context.strokeStyle = themed('text');
      context.lineWidth = Math.min(1.5, radius / 4);
      context.stroke();
    }
    const hasLabel = this.view.scale > (this.answer?.kind === 'tasks' ? 22 : 14);
    if (!hasLabel) return;
    context.fillStyle = themed('text');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.fillText(name.slice(0, 28), x, y + radius + 12);
  }

  private nodeAt({ offsetX, offsetY }: PointerEvent): string | undefined {
    const { view, points } = this;
    const found = points.findIndex(({ x, y }, index) => {
      const reach = this.radius(index) + 3;
      return (
        Math.hypot(view.x + x * view.scale - offsetX, view.y + y * view.scale - offsetY) <= reach
      );
    });
    return this.answer?.nodes[found]?.name;
  }

  private hover(event: PointerEvent): void {
    const name = this.nodeAt(event);
    this.tip.hidden = name === undefined;
    if (name === undefined) return;
    const states = this.answer?.nodes.find((node) => node.name === name)?.states ?? {};
    const words = Object.entries(states).map(([state, n]) =>
      this.answer?.kind === 'tasks' ? state : `${count(n)} ${state}`,
    );
    setText(this.tip, `${name} · ${words.join(', ')}`);
    this.tip.style.left = `${Math.min(event.offsetX + 12, this.canvas.clientWidth - 220)}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }
}

/** Columns by the longest path to a node; within a column near the nodes that it follows. O(nodes + edges). */
function layered(nodes: number, edges: GraphAnswer['edges']): readonly Point[] {
  const before: number[][] = Array.from({ length: nodes }, () => []);
  const after: number[][] = Array.from({ length: nodes }, () => []);
  const open = new Array<number>(nodes).fill(0);
  for (const { from, to } of edges) {
    after[from]?.push(to);
    before[to]?.push(from);
    open[to] = (open[to] ?? 0) + 1;
  }
  const depth = new Array<number>(nodes).fill(0);
  const ready = open.flatMap((count, node) => (count === 0 ? [node] : []));
  for (let k = 0; k < ready.length; k++) {
    const node = ready[k] ?? 0;
    for (const next of after[node] ?? []) {
      depth[next] = Math.max(depth[next] ?? 0, (depth[node] ?? 0) + 1);
      open[next] = (open[next] ?? 0) - 1;
      if (open[next] === 0) ready.push(next);
    }
  }
  const columns: number[][] = [];
  depth.forEach((column, node) => (columns[column] ??= []).push(node));
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const y = new Array<number>(nodes).fill(0);
  for (const column of columns) {
    const wanted = (node: number): number => {
      const inputs = before[node] ?? [];
      return inputs.length === 0
        ? node
        : inputs.reduce((sum, input) => sum + (y[input] ?? 0), 0) / inputs.length;
    };
    const ordered = column
      .map((node) => [wanted(node), node] as const)
      .toSorted(([a, m], [b, n]) => a - b || m - n);
    const gap = tallest / ordered.length;
    ordered.forEach(([, node], k) => (y[node] = (k + 0.5) * gap));
  }
  const stretch = Math.max(2, (WIDE * tallest) / Math.max(1, columns.length - 1));
  return depth.map((column, node) => ({ x: column * stretch, y: y[node] ?? 0 }));
}
