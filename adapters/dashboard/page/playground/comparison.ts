import type { PastDescription } from '../../page-messages.ts';
import { Chart } from '../chart.ts';
import { button, figure, h, section, setText, Table } from '../dom.ts';
import { bytes, count, seconds } from '../format.ts';
import type { StreamSource } from '../link.ts';
import { MomentBar } from '../past.ts';
import { RecordedLink } from '../report/recorded-link.ts';
import { RunPanel } from '../report/run-panel.ts';
import { Stream } from '../views/stream.ts';
import type { RunResult } from './messages.ts';

/** Virtual time begins at a midnight, wherever the reader is: charts show times of day. */
const MIDNIGHT_S = 86_400 + 60 * new Date(86_400_000).getTimezoneOffset();
/** Points of a chart. */
const POINTS = 400;
/** Milliseconds in which the whole run is played. */
const PLAY_MS = 10_000;

const SERIES = [
  { label: 'defaults', colour: '#0072b2' },
  { label: 'your policy', colour: '#d55e00' },
] as const;

type At = (atS: number) => number | null;

/** One run as it is shown: the source of its task stream, and what there was at each moment. */
class ShownRun {
  readonly link: RecordedLink;
  readonly threads: number;
  readonly running: At;
  readonly waiting: At;
  readonly memory: At;

  constructor(readonly result: RunResult) {
    const { history, analysis } = result.data;
    const atMidnight = {
      ...history,
      fromS: history.fromS + MIDNIGHT_S,
      toS: history.toS + MIDNIGHT_S,
    };
    this.link = new RecordedLink({ history: atMidnight });
    this.threads = history.workers.reduce((sum, { threads }) => sum + threads, 0);
    const { fromS, stepS, running, waiting } = analysis.load;
    const stretch =
      (averages: readonly number[]): At =>
      (atS) =>
        averages[Math.floor((atS - MIDNIGHT_S - fromS) / stepS)] ?? null;
    this.running = stretch(running);
    this.waiting = stretch(waiting);
    this.memory = (atS) => {
      if (atS - MIDNIGHT_S > history.toS) return null;
      return history.memory.findLast((sample) => sample.atS <= atS - MIDNIGHT_S)?.managedBytes ?? 0;
    };
  }

  /** The state at a moment, in words. */
  describe(atS: number): string {
    const [running, waiting, memory] = [this.running(atS), this.waiting(atS), this.memory(atS)];
    if (running === null || waiting === null || memory === null) return 'done';
    return `${count(running)} of ${this.threads} threads busy, ${count(waiting)} ready tasks wait, ${bytes(memory)} held`;
  }
}

/** The results of a policy beside those of the defaults: figures, and a moment of virtual time that the reader chooses. */
export class Comparison {
  readonly element: HTMLElement;
  /** The defaults, and the policy; once when there is none. */
  private readonly runs: readonly ShownRun[];
  private readonly charts: readonly {
    readonly chart: Chart;
    readonly of: Measure;
  }[];
  private readonly moment: MomentBar;
  private readonly now = SERIES.map(() => h('p', { class: 'note' }));
  private readonly place = h('div');
  private readonly choices: readonly HTMLButtonElement[];
  private stream: Stream | undefined;
  private streamState: { nowS: number } = { nowS: 0 };
  private atS = MIDNIGHT_S;
  private readonly endS: number;
  private frame = 0;
  private readonly play = button('Play', () => this.toggle());

  constructor(title: string, results: readonly RunResult[]) {
    this.runs = results.map((result) => new ShownRun(result));
    this.endS = Math.max(...this.runs.map(({ link }) => link.range.toS));
    this.charts = (['running', 'waiting', 'memory'] as const).map((of) => {
      const [name, format] = MEASURES[of];
      return { of, chart: new Chart(name, SERIES.slice(0, results.length), format) };
    });
    const past: PastDescription = {
      ...{ kind: 'simulation', title, notes: [], fromS: MIDNIGHT_S, toS: this.endS },
      ...{ startS: MIDNIGHT_S, stream: { fromS: MIDNIGHT_S, toS: this.endS } },
    };
    this.moment = new MomentBar(past, (atS) => {
      this.pause();
      this.move(Math.min(atS, this.endS));
    });
    this.moment.element.prepend(this.play);
    this.choices = this.runs.map((_, number) =>
      button(`Threads under ${SERIES[number]?.label ?? ''}`, () => this.choose(number, past)),
    );
    this.element = h(
      'div',
      {},
      section('Result', h('p', { class: 'lead' }, sentenceOf(results)), tableOf(results)),
      this.moment.element,
      ...this.now,
      h(
        'div',
        { class: 'columns' },
        ...this.charts.map(({ of, chart }) => section(MEASURES[of][0], chart.element)),
      ),
      h('div', { class: 'toolbar' }, ...(results.length > 1 ? this.choices : [])),
      this.place,
    );
    this.choose(results.length - 1, past);
  }

  /** To be called once it stands in the page. */
  show(): void {
    const step = (this.endS - MIDNIGHT_S) / POINTS;
    const times = Array.from({ length: POINTS + 1 }, (_, k) => MIDNIGHT_S + k * step);
    for (const { chart, of } of this.charts)
      chart.showAll(
        times,
        this.runs.map((run) => times.map(run[of])),
      );
    this.move(MIDNIGHT_S);
  }

  /** Again, for another theme. */
  redraw(): void {
    for (const { chart } of this.charts) chart.redraw();
    this.stream?.draw();
    this.move(this.atS);
  }

  leave(): void {
    this.pause();
    this.stream?.leave();
  }

  private choose(number: number, past: PastDescription): void {
    const run = this.runs[number];
    if (run === undefined) return;
    this.choices.forEach((choice, k) => choice.setAttribute('aria-pressed', String(k === number)));
    this.stream?.leave();
    const { link } = run;
    this.streamState = { ...link.state, nowS: Math.max(this.atS, MIDNIGHT_S + 1e-6) };
    const source: StreamSource = {
      state: this.streamState as StreamSource['state'],
      stream: (fromS, toS, width) => link.stream(fromS, toS, width),
    };
    const runs = new RunPanel(link.history);
    const around = {
      ...{ link: source, past, showTask: (key: string) => runs.show(key) },
      ...{ go: () => undefined, say: () => undefined },
    };
    this.stream = new Stream(around, { fromS: MIDNIGHT_S, toS: this.endS });
    this.place.replaceChildren(this.stream.element, runs.element);
  }

  private move(atS: number): void {
    this.atS = atS;
    this.moment.show(atS);
    this.streamState.nowS = Math.max(atS, MIDNIGHT_S + 1e-6);
    this.stream?.draw();
    for (const { chart } of this.charts) chart.point(atS);
    this.runs.forEach((run, k) => {
      const line = this.now[k];
      if (line !== undefined) setText(line, `${SERIES[k]?.label ?? ''}: ${run.describe(atS)}`);
    });
  }

  private toggle(): void {
    if (this.frame !== 0) {
      this.pause();
      return;
    }
    setText(this.play, 'Pause');
    const fromS = this.atS >= this.endS ? MIDNIGHT_S : this.atS;
    const perMs = (this.endS - MIDNIGHT_S) / PLAY_MS;
    let beganMs: number | undefined;
    const step = (nowMs: number): void => {
      beganMs ??= nowMs;
      this.move(Math.min(this.endS, fromS + (nowMs - beganMs) * perMs));
      if (this.atS < this.endS) this.frame = requestAnimationFrame(step);
      else this.pause();
    };
    this.frame = requestAnimationFrame(step);
  }

  private pause(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    setText(this.play, 'Play');
  }
}

type Measure = 'running' | 'waiting' | 'memory';

const MEASURES: Readonly<Record<Measure, readonly [string, (value: number) => string]>> = {
  running: ['Busy threads', count],
  waiting: ['Ready tasks that wait', count],
  memory: ['Results in memory', bytes],
};

/** The figures that are compared; less is better in each. */
const FIGURES: readonly (readonly [
  name: string,
  of: 'makespanS' | 'movedBytes' | 'peakWorkerBytes' | 'idleShare',
  format: (value: number) => string,
])[] = [
  ['Makespan', 'makespanS', (value) => `${value.toFixed(3)} s`],
  ['Bytes moved between workers', 'movedBytes', bytes],
  ['Peak of a worker', 'peakWorkerBytes', bytes],
  ['Idle threads', 'idleShare', (value) => `${(100 * value).toFixed(1)} %`],
];

function tableOf(results: readonly RunResult[]): HTMLElement {
  const names = SERIES.slice(0, results.length).map(({ label }) => label);
  const titles = ['figure', ...names, ...(results.length > 1 ? ['difference'] : [])];
  const table = new Table('Figures of the runs', titles, '');
  table.show(
    FIGURES.map(([name, of, format]) => {
      const [base = 0, own] = results.map((result) => result[of]);
      const cells = results.map((result) => figure(format, result[of]));
      const share = own === undefined || base === 0 ? 0 : own / base - 1;
      const difference = { shown: signed(share), value: share };
      return { key: of, cells: [name, ...cells, ...(own === undefined ? [] : [difference])] };
    }),
  );
  return table.element;
}

function signed(share: number): string {
  const rounded = Math.round(1000 * share) / 10;
  if (rounded === 0) return 'the same';
  return `${rounded > 0 ? '+' : '−'}${Math.abs(rounded)} %`;
}

function sentenceOf([base, own]: readonly RunResult[]): string {
  if (base === undefined) return '';
  if (own === undefined) return `The defaults take ${seconds(base.makespanS)}.`;
  if (own.traceHash === base.traceHash)
    return 'Your policy decides exactly as the defaults do: nothing differs.';
  const share = Math.round(1000 * (own.makespanS / base.makespanS - 1)) / 10;
  return `Your policy takes ${Math.abs(share)} % ${share > 0 ? 'more' : 'less'} time than the defaults. One run on one workload proves little: try others.`;
}
