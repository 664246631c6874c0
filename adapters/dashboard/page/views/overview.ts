import { countOf } from '../../../../core/util/values.ts';
import { Bar, legend, MemoryBars } from '../bar.ts';
import { Chart } from '../chart.ts';
import { MEMORY, prefixColour, STATES } from '../colours.ts';
import { button, type Cell, figure, h, on, patch, section, setText, Table } from '../dom.ts';
import { bytes, clock, count, seconds } from '../format.ts';
import {
  doneTasks,
  type PastSeries,
  type PrefixRow,
  waitingTasks,
  type WorkerRow,
} from '../../page-messages.ts';
import type { Explanation } from '../../page-messages.ts';
import { get } from '../link.ts';
import { linked, taskLink, viewLink } from '../task-link.ts';
import { type Around, complain, type View } from '../view.ts';

/** Prefixes and workers that are shown at first. */
const ROWS = 10;

/** Seconds over which the rate is averaged. */
const RATE_S = 10;

/** The figures at the top: rates and counts, then the states of tasks. */
const TILES = [
  ...['tasks/s', 'workers', 'threads', 'processing', 'queued', 'waiting', 'no-worker', 'memory'],
  'erred',
];

interface Moment {
  readonly atS: number;
  readonly finished: number;
  /** Threads that had a task. */
  readonly busy: number;
}

/** The overview: what the cluster does, why it waits, and what failed. */
export class Overview implements View {
  private readonly tiles = new Map<string, HTMLElement>();
  private readonly running = h('p', {});
  private readonly waiting = h('ul', { class: 'sentences', 'aria-live': 'polite' });
  private readonly slow = h('ul', { class: 'sentences', 'aria-live': 'polite' });
  private readonly look = button('Look for 5 seconds', () => this.explain());
  private readonly failures = h('ul', { class: 'sentences' });
  private readonly failed = section('What failed first', this.failures);
  private readonly whole = h('p', { class: 'note', role: 'status' });
  private readonly filter = h('input', {
    ...{ id: 'prefix-filter', type: 'search', autocomplete: 'off' },
  });
  private readonly prefixes = new Table(
    'Tasks by prefix',
    ['prefix', 'now', 'done', 'time left', 'duration', 'computed ever', 'bytes produced ever'],
    'No tasks.',
    '; search for them, or show all',
  );
  private readonly all = button('Show all', () => this.showAll(), { 'aria-pressed': 'false' });
  private readonly workers = new Table(
    'Workers',
    [
      'worker',
      'status',
      'running',
      'waiting there',
      'threads',
      'work ahead (estimate)',
      'CPU',
      'memory',
    ],
    'No worker is connected: start one with yardmaster worker and the address of this scheduler.',
    ': see Workers',
  );
  private readonly bars = new Map<string, Bar>();
  private readonly memory = new MemoryBars();
  private readonly cluster = h('div', { class: 'cluster' }, h('span', {}, 'memory of all'));
  private readonly marks = new Map<string, HTMLElement>();
  private readonly rate = new Chart(
    'Tasks finished each second',
    [{ label: 'tasks/s', colour: '#009e73' }],
    count,
  );
  private readonly load = new Chart(
    'Tasks on workers, and not begun',
    [
      { label: 'processing', colour: '#009e73' },
      { label: 'not begun', colour: '#e69f00' },
    ],
    count,
  );
  private hasHistory = false;
  private history: PastSeries | undefined;
  /** The moments of the last {@link RATE_S}, the rate of which is shown as a figure. */
  private readonly lately: Moment[] = [];
  readonly element: HTMLElement;

  constructor(private readonly around: Around) {
    const tiles = TILES.map((name) => {
      const value = h('strong', {}, '–');
      this.tiles.set(name, value);
      return h('div', { class: 'tile' }, value, h('span', {}, name));
    });
    on(this.filter, { input: () => this.showPrefixes() });
    const label = h('label', { for: 'prefix-filter' }, 'Search');
    this.element = h(
      'div',
      {},
      h('div', { class: 'tiles' }, ...tiles),
      section('What runs', this.running),
      section('What waits, and why', this.waiting),
      around.past === undefined &&
        section('Why it is slow', h('p', { class: 'toolbar' }, this.look), this.slow),
      this.failed,
      section(
        'Progress',
        h('p', { class: 'toolbar' }, label, this.filter, this.all),
        legend(STATES),
        this.whole,
        this.prefixes.element,
      ),
      h(
        'div',
        { class: 'columns' },
        section('Throughput', this.rate.element),
        section('Tasks on workers, and not begun', this.load.element),
      ),
      section('Workers', legend(MEMORY), this.cluster, this.workers.element),
    );
  }

  update(): void {
    const { state } = this.around.link;
    this.showTotals();
    patch(this.running, ...linked(this.around, state.running.text, state.running.keys));
    const nothing = [{ text: 'Nothing waits.', keys: [] }];
    const waiting = state.waiting.length === 0 ? nothing : state.waiting;
    patch(
      this.waiting,
      ...waiting.map(({ text, keys }) => h('li', {}, ...linked(this.around, text, keys))),
    );
    this.showFailures();
    this.showPrefixes();
    this.showWorkers();
  }

  private sum(of: (row: PrefixRow) => number): number {
    let total = 0;
    for (const row of this.around.link.state.prefixes.values()) total += of(row);
    return total;
  }

  private showTotals(): void {
    const { totals, nowS } = this.around.link.state;
    if (totals === undefined) return;
    const { finished } = totals;
    const last = this.lately.at(-1);
    if (this.around.past !== undefined) this.showHistory(nowS);
    else if (last === undefined || nowS - last.atS >= 0.9) {
      const rateSince = (then = last): number =>
        then === undefined || then.atS === nowS
          ? 0
          : Math.max(0, (finished - then.finished) / (nowS - then.atS));
      this.rate.add(nowS, [rateSince()]);
      this.load.add(nowS, [this.sum((row) => row.processing), this.sum(waitingTasks)]);
      this.lately.push({ atS: nowS, finished, busy: this.threadsAtWork() });
      while (nowS - (this.lately[0]?.atS ?? nowS) > RATE_S) this.lately.shift();
      const rate = rateSince(this.lately[0]);
      this.tile('tasks/s', rate < 10 ? String(Number(rate.toFixed(1))) : count(rate));
    }
    for (const [state] of STATES) this.tile(state, count(this.sum((row) => row[state])));
    this.tile('workers', count(totals.workers));
    this.tile('threads', count(totals.threads));
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
    const { first, count: ever } = this.around.link.state.failures;
    this.failed.hidden = first.length === 0;
    const items = first
      .slice(0, 5)
      .map(({ key, worker, text, atMs, because }) =>
        h(
          'li',
          {},
          `${clock(atMs / 1000)} `,
          taskLink(this.around, key),
          `${worker === '' ? '' : ` on ${worker}`}: ${text}`,
          ...(because.length === 0
            ? []
            : linked(this.around, `. Failed because of it: ${because.join(', ')}`, because)),
        ),
      );
    const erred = this.sum((row) => row.erred);
    const now = erred <= ever ? '' : ': those that failed, and tasks that need them';
    const all = `${countOf(ever, 'task')} failed of ${ever === 1 ? 'its' : 'their'} own since the scheduler began. ${countOf(erred, 'is', 'are')} erred now${now}.`;
    patch(this.failures, ...items, h('li', {}, all));
  }

  /** Asks the scheduler to watch what threads do, and shows the causes of lost time that it finds. */
  private explain(): void {
    this.look.disabled = true;
    patch(this.slow, h('li', {}, 'Looking at what threads do …'));
    get<Explanation>('api/why-slow')
      .then(
        ({ summary, findings }) => {
          const none = findings.length === 0 ? ['Nothing stands out.'] : [];
          const causes = findings.map(({ title, cost, text, remedy }) =>
            h(
              'li',
              {},
              h('strong', {}, `${cost === '' ? title : `${title}: ${cost}`}.`),
              ` ${text} ${remedy}`,
            ),
          );
          const rest = [...none, ...summary].map((text) => h('li', {}, text));
          patch(this.slow, ...causes, ...rest);
        },
        (error: unknown) => {
          patch(this.slow);
          complain(this.around, error);
        },
      )
      .finally(() => (this.look.disabled = false));
  }

  private showAll(): void {
    const isAll = this.all.getAttribute('aria-pressed') === 'true';
    this.all.setAttribute('aria-pressed', String(!isAll));
    this.showPrefixes();
  }

  /** Those with tasks that are not done come first, then those with failures. */
  private showPrefixes(): void {
    const { prefixes, totals } = this.around.link.state;
    const wanted = this.filter.value.toLowerCase();
    const isAll = wanted !== '' || this.all.getAttribute('aria-pressed') === 'true';
    const all = [...prefixes.values()];
    const found = all.filter(({ name }) => name.toLowerCase().includes(wanted));
    const activity = (row: PrefixRow): number =>
      row.processing > 0 ? 3 : waitingTasks(row) > 0 ? 2 : row.erred > 0 ? 1 : 0;
    const threads = this.threadsLately();
    const rows = found
      .toSorted((a, b) => activity(b) - activity(a))
      .map((row) => ({ key: row.name, cells: this.prefixCells(row, threads) }));
    this.prefixes.show(rows, isAll ? undefined : ROWS);
    this.all.hidden = prefixes.size <= ROWS;
    const done = this.sum(doneTasks);
    const known = totals?.tasks ?? 0;
    const onThreadsS = this.sum((row) => secondsOfWork(row) / Math.max(1, threads));
    const leftS = all.reduce((most, { ratedS }) => Math.max(most, ratedS), onThreadsS);
    const why =
      leftS > onThreadsS ? 'by the rate of a limit' : 'with as many busy threads as lately';
    const isOverdue = all.some((row) => row.isOverdue);
    const left = isOverdue
      ? '; the time left is unknown, as a task runs far longer than usual'
      : leftS > 0
        ? `; about ${seconds(leftS)} left ${why}`
        : '';
    setText(this.whole, known === 0 ? '' : `Done: ${progress(done, known)}${left}.`);
  }

  /** O(workers) */
  private threadsAtWork(): number {
    let busy = 0;
    for (const { threads, processing } of this.around.link.state.workers.values())
      busy += Math.min(threads, processing);
    return busy;
  }

  /** Threads that had a task in the last {@link RATE_S}, on average; all, when none had. */
  private threadsLately(): number {
    const busy = this.lately.map((moment) => moment.busy).filter((threads) => threads > 0);
    if (busy.length === 0)
      return this.threadsAtWork() || (this.around.link.state.totals?.threads ?? 0);
    return busy.reduce((sum, threads) => sum + threads, 0) / busy.length;
  }

  private prefixCells(row: PrefixRow, threads: number): Cell[] {
    const { name, number, finished, durationS, producedBytes } = row;
    const known = STATES.map(([state]) => row[state]);
    const total = known.reduce((sum, n) => sum + n, 0);
    const words = STATES.flatMap(([state], k) =>
      known[k] === 0 ? [] : [`${count(known[k] ?? 0)} ${state}`],
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
    const done = doneTasks(row);
    const leftS = Math.max(row.ratedS, secondsOfWork(row) / Math.max(1, threads));
    return [
      this.mark(name, number),
      bar.element,
      { shown: total === 0 ? '–' : progress(done, total), value: total === 0 ? -1 : done / total },
      { shown: row.isOverdue ? 'unknown' : leftS > 0 ? seconds(leftS) : '–', value: leftS },
      figure(seconds, durationS),
      figure(count, finished),
      figure(bytes, producedBytes),
    ];
  }

  private showWorkers(): void {
    const workers = [...this.around.link.state.workers.values()];
    this.memory.setScale(workers);
    const all = { managed: 0, unmanagedOld: 0, unmanagedRecent: 0, spilled: 0, memoryLimit: 0 };
    for (const row of workers)
      for (const field of Object.keys(all) as (keyof typeof all)[]) all[field] += row[field];
    if (workers.some(({ memoryLimit }) => memoryLimit === 0)) all.memoryLimit = 0;
    const { shown } = this.memory.show('', all);
    if (this.cluster.lastChild !== shown) this.cluster.append(shown);
    this.cluster.hidden = workers.length === 0;
    this.workers.show(
      workers.map((row) => ({ key: row.address, cells: this.workerCells(row) })),
      ROWS,
    );
  }

  private workerCells(row: WorkerRow): Cell[] {
    const { address, name, status, threads, processing, cpuPercent, occupancyS } = row;
    let link = this.marks.get(`worker ${address}`);
    if (link === undefined) {
      link = viewLink(this.around, `workers?worker=${encodeURIComponent(address)}`, name);
      this.marks.set(`worker ${address}`, link);
    }
    return [
      link,
      status,
      row.running,
      processing - row.running,
      threads,
      figure(seconds, occupancyS),
      { shown: cpuPercent < 0 ? '–' : `${cpuPercent} %`, value: cpuPercent },
      this.memory.show(address, row),
    ];
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

/** 3 of 12 · 25 % */
function progress(done: number, all: number): string {
  return `${count(done)} of ${count(all)} · ${Math.floor((100 * done) / all)} %`;
}

/** Thread seconds of what is not done and may run; 0: nothing is left, or it is not known. */
function secondsOfWork(row: PrefixRow): number {
  return (row.processing + row.queued + row.waiting) * Math.max(0, row.durationS);
}
