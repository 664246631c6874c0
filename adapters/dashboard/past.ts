import { type ClusterView, type HookTable, YardmasterError } from '../../core/api/index.ts';
import { Access } from './access.ts';
import { Bandwidths } from './bandwidths.ts';
import {
  encode,
  Failures,
  prefixRows,
  readViewerMessage,
  TableDelta,
  totalsOf,
  Viewer,
  type ViewerSocket,
  workerRows,
} from './feed.ts';
import {
  type Failure,
  overWorkers,
  type PastDescription,
  type PastSeries,
  type PrefixRow,
  type StreamAnswer,
  type Totals,
  waitingTasks,
  type WorkerRow,
} from './page-messages.ts';
import {
  addApi,
  addData,
  addFeed,
  addPages,
  Answers,
  type ApiSource,
  type PageFeed,
} from './routes.ts';
import { createServer, startServer, urlOf } from './server.ts';
import { PrefixNumbers, streamWindow, TaskRecorder } from './task-recorder.ts';
import { RunningTasks, type Sentence, waitingIn } from '../../core/shared/waiting.ts';

/** A scheduler that is gone. */
export interface Past {
  readonly kind: PastDescription['kind'];
  readonly title: string;
  /** Sentences about what cannot be seen, or is not certain. */
  readonly notes: readonly string[];
  readonly samples: PastSamples;
  /** The cluster at its end. */
  readonly cluster: ClusterView;
  /**
   * The scheduler as it was at a moment, until another one is asked for.
   * @param isExplained - with the candidates of decisions, which takes several times as long
   */
  at(atMs: number, isExplained: boolean): Promise<ApiSource>;
}

/** The address at which the pages are served. */
export interface PastDashboardOptions {
  readonly host: string;
  /** The next free one when it is taken; 0: any. */
  readonly port: number;
}

/** The pages over a scheduler that is gone. */
export interface PastDashboard {
  /** The address that a browser opens. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves the pages of the dashboard over a scheduler that is gone, on this machine only. Nothing can be changed.
 * @throws Error when the host cannot be listened at
 */
export async function openPastDashboard(
  past: Past,
  { host, port }: PastDashboardOptions,
): Promise<PastDashboard> {
  const { samples, kind, title, notes, cluster } = past;
  const access = new Access({ host, hosts: [], hasCertificates: false });
  const app = await createServer(access, undefined);
  const { range } = samples;
  const { fromS, toS } = samples.recorder.range() ?? range;
  const startS = samples.lastBusyMs / 1000;
  const stream = { fromS: fromS - 0.01, toS: toS + 0.01 };
  const description: PastDescription = { kind, title, notes, ...range, startS, stream };
  const answers = new Answers();
  await addPages(app, answers, cluster, access, description);
  addFeed(app, new PastFeed(samples));
  addApi(app, answers, (at, isExplained) => {
    const atS = at === '' ? startS : Number(at);
    if (Number.isFinite(atS)) return past.at(atS * 1000, isExplained);
    throw new YardmasterError('ERR_PROTOCOL', `at is seconds since 1970, not ${at}`, { at });
  });
  addData(app, answers, '/api/history', () => samples.series());
  addData(app, answers, '/api/bandwidths', () => samples.bandwidths.answer());
  app.get('/health', { config: { need: 'nothing' } }, (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send('ok'),
  );
  const server = await startServer(app, host, port);
  return { url: urlOf('http', host, server.port), close: () => server.close() };
}

/** Sends open pages the moment that they ask for; first the last one with tasks. */
export class PastFeed implements PageFeed {
  private frame = 0;

  constructor(private readonly samples: PastSamples) {}

  open(socket: ViewerSocket): Viewer {
    const viewer = new Viewer(socket);
    this.show(viewer, this.samples.lastBusyMs);
    return viewer;
  }

  receive(viewer: Viewer, text: string): void {
    const message = readViewerMessage(text);
    if (message === undefined) viewer.drop();
    else if (message.type === 'at') this.show(viewer, message.atS * 1000);
    else if (message.type === 'stream') {
      const { id, fromS, toS, width } = message;
      const sinceS = this.samples.range.fromS;
      const window = streamWindow(this.samples.recorder, { fromS, toS, width });
      viewer.send(JSON.stringify({ type: 'stream', id, sinceS, ...window } satisfies StreamAnswer));
    }
  }

  /** Nothing is kept of a page that was closed. */
  leave(): void {
    return;
  }

  private show(viewer: Viewer, atMs: number): void {
    const sample = this.samples.at(atMs);
    if (sample === undefined) return;
    const { failures } = this.samples;
    const { totals, running, waiting, failureCount: count, prefixes, workers } = sample;
    const until = ({ atMs: failedMs }: Failure): boolean => failedMs <= Math.round(sample.atMs);
    const n = ++this.frame;
    const frame = encode({
      ...{ type: 'state', n, nowS: sample.atMs / 1000, totals, isWhole: true },
      ...{ running, waiting },
      failures: {
        ...{ first: failures.first.filter(until), newest: failures.newest.filter(until), count },
      },
      prefixes: { changed: prefixes, gone: [] },
      workers: { changed: workers, gone: [] },
    });
    viewer.sendFrame(n, frame, 0);
  }
}

/** Actions of tasks that the task stream holds. Memory is taken only for those that there are. */
const ACTIONS_MAX = 4_000_000;

/** Rows of all samples together. */
const ROWS_MAX = 200_000;
const SAMPLES_MIN = 100;
const SAMPLES_MAX = 1000;

/** Throughput is the mean over so long at least, or over this part of the whole. */
const RATE_MS = 200;
const RATES = 100;

/** Between two samples, until there are too many of them. */
const GAP_MS = 10;

/** The cluster at a moment, in the tables that the feed sends. */
export interface PastSample {
  readonly atMs: number;
  readonly totals: Totals;
  readonly running: Sentence;
  readonly waiting: readonly Sentence[];
  readonly failureCount: number;
  readonly prefixes: readonly PrefixRow[];
  readonly workers: readonly WorkerRow[];
}

/** The samples of a replay: every run, and the cluster at up to a thousand moments. */
export class PastSamples {
  readonly numbers = new PrefixNumbers();
  readonly recorder = new TaskRecorder(ACTIONS_MAX, this.numbers);
  readonly failures = new Failures();
  readonly bandwidths = new Bandwidths(true);
  /** Of workers, by address. */
  private readonly names = new Map<string, string>();
  private readonly moves = { policy: 'all policies', copies: 0, drops: 0 };
  private samples: PastSample[] = [];
  private gapMs = GAP_MS;
  private nowMs = 0;
  private readonly prefixes = new TableDelta<PrefixRow>('name');
  private readonly workers = new TableDelta<WorkerRow>('address');

  readonly hooks = {
    taskTransition: (task, start, finish, _stimulusId, details) => {
      this.recorder.record(task, start, finish, details);
      if (finish === 'erred')
        this.failures.add(task, this.nowMs, (address) => this.names.get(address));
    },
    workerAdded: ({ address, name }) => this.names.set(address, name),
    workerRemoved: ({ address, name }) => this.recorder.lanes.forget(address, name),
  } satisfies HookTable;

  /** To be called before each stimulus. */
  setTime(nowMs: number): void {
    this.nowMs = nowMs;
  }

  /** The Active Memory Manager has ordered so many; a log does not say which policy wanted them. */
  addMoves(copies: number, drops: number): void {
    this.moves.copies += copies;
    this.moves.drops += drops;
  }

  /** To be called after each stimulus. O(prefixes + workers) now and then. */
  observe(cluster: ClusterView): void {
    const last = this.samples.at(-1);
    if (last === undefined || this.nowMs - last.atMs >= this.gapMs) this.take(cluster);
  }

  finish(cluster: ClusterView): void {
    this.take(cluster);
    for (const { address, name } of cluster.workers.values()) {
      this.recorder.lanes.nameRows(address, name);
    }
  }

  private take(cluster: ClusterView): void {
    const { nowMs } = this;
    if (this.samples.at(-1)?.atMs === nowMs) this.samples.pop();
    // Rows that did not change are shared with the sample before.
    const running = new RunningTasks(cluster);
    this.prefixes.next(prefixRows(cluster, this.numbers, running));
    this.workers.next(workerRows(cluster, nowMs));
    const prefixes = this.prefixes.all().changed;
    const workers = this.workers.all().changed;
    this.samples.push({
      ...{ atMs: nowMs, running: running.sentence },
      waiting: waitingIn(cluster, undefined, running),
      totals: { ...totalsOf(cluster), moves: [{ ...this.moves }] },
      ...{ failureCount: this.failures.count, prefixes, workers },
    });
    const rows = ROWS_MAX / Math.max(1, prefixes.length + workers.length);
    if (this.samples.length > Math.min(SAMPLES_MAX, Math.max(SAMPLES_MIN, rows))) this.thin();
  }

  /** From the first sample to the last one. */
  get range(): { readonly fromS: number; readonly toS: number } {
    const { samples } = this;
    return { fromS: (samples[0]?.atMs ?? 0) / 1000, toS: (samples.at(-1)?.atMs ?? 0) / 1000 };
  }

  /** The last moment at which there were tasks: later ones have little to show. */
  get lastBusyMs(): number {
    const { samples } = this;
    const busy = samples.findLast(({ totals }) => totals.tasks > 0) ?? samples.at(-1);
    return busy?.atMs ?? 0;
  }

  /** The newest sample that is not later; the first one when all are. O(log samples). */
  at(atMs: number): PastSample | undefined {
    const { samples } = this;
    let [low, high] = [0, samples.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((samples[middle]?.atMs ?? 0) <= atMs) low = middle;
      else high = middle;
    }
    return samples[low];
  }

  /** O(samples · (prefixes + workers)). */
  series(): PastSeries {
    const { samples } = this;
    const sum = ({ prefixes }: PastSample, count: (row: PrefixRow) => number): number =>
      prefixes.reduce((all, row) => all + count(row), 0);
    const { fromS, toS } = this.range;
    const rateMs = Math.max(RATE_MS, (1000 * (toS - fromS)) / RATES);
    let first = 0;
    return {
      timesS: samples.map(({ atMs }) => atMs / 1000),
      finishedPerS: samples.map(({ atMs, totals }) => {
        while ((samples[first + 1]?.atMs ?? Infinity) <= atMs - rateMs) first++;
        const before = samples[first];
        if (before === undefined || before.atMs >= atMs) return 0;
        const done = totals.finished - before.totals.finished;
        return Math.max(0, (1000 * done) / Math.max(rateMs, atMs - before.atMs));
      }),
      processing: samples.map((sample) => sum(sample, (row) => row.processing)),
      waiting: samples.map((sample) => sum(sample, waitingTasks)),
      system: samples.map(({ workers }) => overWorkers(workers)),
      moves: samples.map(({ totals: { moves = [] } }) => moves),
    };
  }

  private thin(): void {
    this.gapMs *= 2;
    let keptMs = -Infinity;
    this.samples = this.samples.filter(({ atMs }) => {
      // The newest one may be the end.
      if (atMs - keptMs < this.gapMs && atMs < this.nowMs) return false;
      keptMs = atMs;
      return true;
    });
  }
}
