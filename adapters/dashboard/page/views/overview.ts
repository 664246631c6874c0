import { Bar, legend } from '../bar.ts';
import { Chart } from '../chart.ts';
import { MEMORY, prefixColour, STATES } from '../colours.ts';
import { type Cell, h, section, setText, Table } from '../dom.ts';
import { bytes, clock, count, seconds } from '../format.ts';
import {
  type PastSeries,
  type PrefixRow,
  waitingTasks,
  type WorkerRow,
} from '../../page-messages.ts';
import { get } from '../link.ts';
import { linked, taskLink, viewLink } from '../task-link.ts';
import { type Around, complain, type View } from '../view.ts';

/** The overview: what the cluster does, why it waits, and what failed. */
export class Overview implements View {
  private readonly tiles = new Map<string, HTMLElement>();
  private readonly waiting = h('ul', { class: 'sentences', 'aria-live': 'polite' });
  private readonly failures = h('ul', { class: 'sentences' });
  private readonly failed = section('What failed first', this.failures);
  private readonly prefixes = new Table(
    'Tasks by prefix',
    ['prefix', 'now', 'computed', 'one takes', 'bytes produced'],
    'No tasks yet.',
  );
  private readonly workers = new Table(
    'Workers',
    ['worker', 'status', 'tasks / threads', 'work ahead', 'CPU', 'memory'],
    'No worker is connected: start one with yardmaster worker and the address of this scheduler.',
  );
  private readonly bars = new Map<string, Bar>();
  private readonly marks = new Map<string, HTMLElement>();
  private readonly rate = new Chart(
    'Tasks finished each second',
    [{ label: 'tasks/s', colour: '#009e73' }],
    count,
  );
  private readonly load = new Chart(
    'Tasks on workers and waiting',
    [
      { label: 'processing', colour: '#009e73' },
      { label: 'waiting', colour: '#e69f00' },
    ],
    count,
  );
  private hasHistory = false;
  private history: PastSeries | undefined;
  private last: { readonly atS: number; readonly finished: number } | undefined;
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    const names = [
      'tasks/s',
      'processing',
      'waiting',
      'in memory',
      'failed',
      'workers',
      'threads',
      'clients',
    ];
    const tiles = names.map((name) => {
      const value = h('strong', {}, '–');
      this.tiles.set(name, value);
      return h('div', { class: 'tile' }, value, h('span', {}, name));
    });
    this.element = h(
      'div',
      {},
      h('div', { class: 'tiles' }, ...tiles),
      section('What waits, and why', this.waiting),
      this.failed,
      section('Progress', legend(STATES), this.prefixes.element),
      h(
        'div',
        { class: 'columns' },
        section('Throughput', this.rate.element),
        section('Tasks on workers and waiting', this.load.element),
      ),
      section('Workers', legend(MEMORY), this.workers.element),
    );
  }

  update(): void {
    const { state } = this.around.link;
    this.showTotals();
    const nothing = [{ text: 'Nothing waits.', keys: [] }];
    const waiting = state.waiting.length === 0 ? nothing : state.waiting;
    if (this.waiting.textContent !== waiting.map(({ text }) => text).join('')) {
      this.waiting.replaceChildren(
        ...waiting.map(({ text, keys }) => h('li', {}, ...linked(this.around, text, keys))),
      );
    }
    this.showFailures();
    this.prefixes.show(
      [...state.prefixes.values()].map((row) => ({ key: row.name, cells: this.prefixCells(row) })),
    );
    this.workers.show(
      [...state.workers.values()].map((row) => ({
        key: row.address,
        cells: this.workerCells(row),
      })),
    );
  }

  private showTotals(): void {
    const { state } = this.around.link;
    const { totals, nowS } = state;
    if (totals === undefined) return;
    const sum = (of: (row: PrefixRow) => number): number => {
      let total = 0;
      for (const row of state.prefixes.values()) total += of(row);
      return total;
    };
    const processing = sum((row) => row.processing);
    const waiting = sum(waitingTasks);
    const { finished } = totals;
    const { last } = this;
    if (this.around.past !== undefined) this.showHistory(nowS);
    else if (last === undefined || nowS - last.atS >= 0.9) {
      const rate = last === undefined ? 0 : (finished - last.finished) / (nowS - last.atS);
      this.last = { atS: nowS, finished };
      this.rate.add(nowS, [Math.max(0, rate)]);
      this.load.add(nowS, [processing, waiting]);
      this.tile('tasks/s', count(Math.max(0, rate)));
    }
    this.tile('processing', count(processing));
    this.tile('waiting', count(waiting));
    this.tile('in memory', count(sum((row) => row.memory)));
    this.tile('failed', count(sum((row) => row.erred)));
    this.tile('workers', count(totals.workers));
    this.tile('threads', count(totals.threads));
    this.tile('clients', count(totals.clients));
  }

  /** The charts show the whole time, and the tiles the moment. */
  private showHistory(nowS: number): void {
    const { history } = this;
    if (history !== undefined) {
      const k = history.timesS.findLastIndex((atS) => atS <= nowS);
      this.tile('tasks/s', count(history.finishedPerS[Math.max(0, k)] ?? 0));
    }
    if (this.hasHistory || nowS === 0) return;
    this.hasHistory = true;
    get<PastSeries>('api/history').then(
      (found) => {
        this.history = found;
        this.rate.showAll(found.timesS, [found.finishedPerS]);
        this.load.showAll(found.timesS, [found.processing, found.waiting]);
        this.showHistory(nowS);
      },
      (error: unknown) => complain(this.around, error),
    );
  }

  private tile(name: string, text: string): void {
    const element = this.tiles.get(name);
    if (element !== undefined) setText(element, text);
  }

  private showFailures(): void {
    const { first, count: all } = this.around.link.state.failures;
    this.failed.hidden = first.length === 0;
    if (this.failures.dataset['count'] === String(all)) return;
    this.failures.dataset['count'] = String(all);
    const items = first.slice(0, 5).map(({ key, text, atMs }) => {
      return h('li', {}, `${clock(atMs / 1000)} `, taskLink(this.around, key), ` ${text}`);
    });
    const more = all - items.length;
    if (more > 0) items.push(h('li', {}, `and ${count(more)} more, which failed of their own`));
    this.failures.replaceChildren(...items);
  }

  private prefixCells(row: PrefixRow): Cell[] {
    const { name, number, finished, durationS, nbytes } = row;
    const known = STATES.map(([state]) => row[state]);
    const total = known.reduce((sum, n) => sum + n, 0);
    const words = STATES.flatMap(([, , text], k) =>
      known[k] === 0 ? [] : [`${count(known[k] ?? 0)} ${text}`],
    );
    const bar = this.bar(`prefix ${name}`);
    bar.show(
      STATES.map(([state, colour], k) => ({
        name: state,
        colour,
        share: total === 0 ? 0 : (known[k] ?? 0) / total,
      })),
      words.length === 0 ? 'none left' : words.join(', '),
    );
    return [
      this.mark(name, number),
      bar.element,
      count(finished),
      seconds(durationS),
      bytes(nbytes),
    ];
  }

  private workerCells(row: WorkerRow): Cell[] {
    const { address, name, status, threads, processing, cpuPercent, memoryLimit } = row;
    const parts = MEMORY.map(([kind]) => row[kind]);
    const sum = parts.reduce((total, part) => total + part, 0);
    const scale = memoryLimit > 0 ? Math.max(memoryLimit, sum) : sum;
    const bar = this.bar(`worker ${address}`);
    const words = MEMORY.map(([, , text], k) => `${bytes(parts[k] ?? 0)} ${text}`).join(', ');
    const of = memoryLimit > 0 ? ` of ${bytes(memoryLimit)}` : '';
    bar.show(
      MEMORY.map(([kind, colour], k) => ({
        name: kind,
        colour,
        share: scale === 0 ? 0 : (parts[k] ?? 0) / scale,
      })),
      `${bytes(sum)}${of}: ${words}`,
    );
    let link = this.marks.get(`worker ${address}`);
    if (link === undefined) {
      link = viewLink(this.around, `workers?worker=${encodeURIComponent(address)}`, name);
      this.marks.set(`worker ${address}`, link);
    }
    const used = cpuPercent < 0 ? '–' : `${cpuPercent} %`;
    return [link, status, `${processing} / ${threads}`, seconds(row.occupancyS), used, bar.element];
  }

  private bar(key: string): Bar {
    let bar = this.bars.get(key);
    if (bar === undefined) this.bars.set(key, (bar = new Bar()));
    return bar;
  }

  private mark(name: string, number: number): HTMLElement {
    let element = this.marks.get(name);
    if (element === undefined) {
      const colour = h('span', { class: 'mark', 'aria-hidden': 'true' });
      colour.style.background = prefixColour(number);
      this.marks.set(name, (element = h('span', {}, colour, name)));
    }
    return element;
  }
}
