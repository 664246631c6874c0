import {
  type AmmStatus,
  BRIDGE,
  type ClusterView,
  type PluginContext,
  type TaskView,
  type Timer,
} from '../../core/api/index.ts';
import { Bandwidths } from './bandwidths.ts';
import { clientCount, orNull } from './metrics.ts';
import type {
  Failure,
  FailureSummary,
  PageMessage,
  PrefixRow,
  StateFrame,
  StreamAnswer,
  StreamRequest,
  TableChange,
  Totals,
  WorkerRow,
} from './page-messages.ts';
import { ProcessFigures } from './process-figures.ts';
import { PrefixNumbers, type RunningTask, streamWindow, TaskRecorder } from './task-recorder.ts';
import { runningCount, RunningTasks, waitingIn } from '../../core/shared/waiting.ts';

/** Between two frames, at least. */
const FRAME_MS = 250;

/** With more viewers than this, frames become rarer, so that all of them together cost no more. */
const VIEWERS_AT_FULL_RATE = 4;

/** Between two frames, however many viewers there are. */
const FRAME_MAX_MS = 1000;

/** A viewer that does not acknowledge a frame within this is dropped. */
const SILENCE_MAX_MS = 30_000;

/** Bytes per second and viewer, beyond which frames become rarer. */
const RATE_MAX = 150_000;

/** After the last viewer has left, tasks are recorded for so long, for one that reloads the page. */
const LINGER_MS = 60_000;

/** A pause after each computed part of the task stream, as a multiple of the time that it took the thread of the scheduler. */
const WINDOW_PAUSE = 9;

type WindowRequest = Extract<PageMessage, { type: 'stream' }>;

interface FeedOptions {
  readonly history: number;
  readonly recordsAlways: boolean;
}

/**
 * The feed of open pages: figures by prefix and by worker, only those that changed, and the part of the task stream
 * that is shown. A frame is made once for all viewers. Without a viewer there is no timer and no hook.
 */
export class Feed {
  private readonly viewers = new Set<Viewer>();
  private readonly numbers = new PrefixNumbers();
  private readonly recorder: TaskRecorder;
  private readonly failures: Failures;
  private readonly prefixes = new TableDelta<PrefixRow>('name');
  private readonly workers = new TableDelta<WorkerRow>('address');
  private readonly process = new ProcessFigures();
  /** Learnt while a page is open. */
  readonly bandwidths = new Bandwidths();
  private frame = 0;
  private nextMs = 0;
  private idleSinceMs = 0;
  private timer: Timer | undefined;
  private stopRecording: (() => void) | undefined;
  private recordingSinceMs = 0;
  /** The part of the task stream that was made last. */
  private latest:
    { readonly asked: string; readonly atMs: number; readonly text: string } | undefined;
  /** The newest request of each viewer for a part of the task stream, the oldest viewer first. */
  private readonly windowRequests = new Map<Viewer, WindowRequest>();
  private windowTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly context: PluginContext,
    { history, recordsAlways }: FeedOptions,
  ) {
    this.recorder = new TaskRecorder(history, this.numbers);
    this.failures = Failures.of(context);
    if (recordsAlways) this.record();
    this.recordsAlways = recordsAlways;
  }

  private readonly recordsAlways: boolean;

  get viewerCount(): number {
    return this.viewers.size;
  }

  /** A page was opened. */
  open(socket: ViewerSocket): Viewer {
    const viewer = new Viewer(socket);
    this.viewers.add(viewer);
    this.record();
    this.timer ??= this.context.every(FRAME_MS / 2, () => this.tick());
    this.nextMs = 0;
    return viewer;
  }

  /** Handles a message of a page. */
  receive(viewer: Viewer, text: string): void {
    const message = readViewerMessage(text);
    if (message === undefined || message.type === 'at') this.drop(viewer);
    else if (message.type === 'ack') viewer.acknowledge(message.n);
    else {
      this.windowRequests.set(viewer, message);
      if (this.windowTimer === undefined) this.answerWindow();
    }
  }

  /**
   * Answers one request, and the next ones after pauses: however many pages ask for whatever they like, their answers take a
   * tenth of the thread's time at most. A page that asks again meanwhile gets the newest part only.
   */
  private answerWindow(): void {
    this.windowTimer = undefined;
    const [next] = this.windowRequests;
    if (next === undefined) return;
    const [viewer, request] = next;
    this.windowRequests.delete(viewer);
    const startMs = performance.now();
    viewer.send(`{"type":"stream","id":${request.id},${this.windowFor(request).slice(1)}`);
    const pauseMs = WINDOW_PAUSE * (performance.now() - startMs);
    this.windowTimer = setTimeout(() => this.answerWindow(), pauseMs).unref();
  }

  /** Made once for pages that follow the same frame. */
  private windowFor(request: StreamRequest): string {
    const { fromS, toS, width } = request;
    const asked = `${fromS} ${toS} ${width}`;
    const nowMs = this.context.clock.nowMs();
    if (this.latest?.asked === asked && nowMs - this.latest.atMs < FRAME_MS)
      return this.latest.text;
    const sinceS = Math.round(this.recordingSinceMs) / 1000;
    const { cluster } = this.context;
    const window = streamWindow(this.recorder, request, { running: runningIn(cluster), nowMs });
    let running = 0;
    for (const worker of cluster.workers.values()) running += runningCount(worker);
    const text = JSON.stringify({ sinceS, running, ...window } satisfies Omit<
      StreamAnswer,
      'type' | 'id'
    >);
    this.latest = { asked, atMs: nowMs, text };
    return text;
  }

  /** A page was closed. */
  leave(viewer: Viewer): void {
    this.windowRequests.delete(viewer);
    if (this.viewers.delete(viewer)) this.idleSinceMs = this.context.clock.nowMs();
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.process.rest();
    this.stopRecording?.();
    this.stopRecording = undefined;
    this.failures.close();
    clearTimeout(this.windowTimer);
    this.windowRequests.clear();
    for (const viewer of this.viewers) viewer.drop();
    this.viewers.clear();
  }

  private drop(viewer: Viewer): void {
    this.leave(viewer);
    viewer.drop();
  }

  private record(): void {
    if (this.stopRecording !== undefined) return;
    this.stopRecording = this.context.get(BRIDGE).observe(this.recorder.hooks);
    this.recordingSinceMs = this.context.clock.nowMs();
  }

  private tick(): void {
    const nowMs = this.context.clock.nowMs();
    if (this.viewers.size === 0) {
      this.rest(nowMs);
      return;
    }
    for (const viewer of this.viewers) {
      if (viewer.silentMs(nowMs) > SILENCE_MAX_MS) this.drop(viewer);
    }
    if (nowMs < this.nextMs || ![...this.viewers].some(({ isReady }) => isReady)) return;
    const bytes = this.sendFrames(nowMs);
    this.nextMs = nowMs + Math.max(this.frameMs, (1000 * bytes) / RATE_MAX) - FRAME_MS / 4;
  }

  private get frameMs(): number {
    const crowding = Math.max(1, this.viewers.size / VIEWERS_AT_FULL_RATE);
    return Math.min(FRAME_MAX_MS, FRAME_MS * crowding);
  }

  /**
   * Each frame is encoded once, and all viewers are sent the same bytes.
   * @returns length of what most viewers got
   */
  private sendFrames(nowMs: number): number {
    const { cluster } = this.context;
    const before = this.frame++;
    const n = this.frame;
    this.bandwidths.read(cluster);
    const amm = orNull(() => this.context.run('amm.status')) as AmmStatus | null;
    const process = this.process.read(nowMs);
    const totals = { ...totalsOf(cluster), process, moves: amm?.moves };
    const running = new RunningTasks(cluster);
    const common: Omit<StateFrame, 'prefixes' | 'workers'> = {
      ...{ type: 'state', n, nowS: nowMs / 1000, totals },
      running: running.sentence,
      waiting: waitingIn(cluster, this.context.get(BRIDGE).slowCalls(), running),
      failures: this.failures.summary,
    };
    const prefixes = this.prefixes.next(prefixRows(cluster, this.numbers, running));
    const workers = this.workers.next(workerRows(cluster, nowMs));
    const change = encode({ ...common, prefixes, workers });
    let whole: Buffer | undefined;
    for (const viewer of this.viewers) {
      if (!viewer.isReady) continue;
      if (viewer.base === before && before > 0) viewer.sendFrame(n, change, nowMs);
      else {
        whole ??= this.wholeFrame(common);
        viewer.sendFrame(n, whole, nowMs);
      }
    }
    return change.length;
  }

  private wholeFrame(common: Omit<StateFrame, 'prefixes' | 'workers'>): Buffer {
    const all = { prefixes: this.prefixes.all(), workers: this.workers.all() };
    return encode({ ...common, isWhole: true, ...all });
  }

  private rest(nowMs: number): void {
    if (nowMs - this.idleSinceMs < LINGER_MS) return;
    this.process.rest();
    this.timer?.cancel();
    this.timer = undefined;
    if (this.recordsAlways) return;
    this.stopRecording?.();
    this.stopRecording = undefined;
  }
}

export function encode(frame: StateFrame): Buffer {
  return Buffer.from(JSON.stringify(frame));
}

/** The number of first failures that are kept, and of the newest ones. */
const KEPT = 10;
/** Tasks that are named with the failure because of which they failed. */
const NAMED = 3;

/** The first and the newest failures. Costs nothing while nothing fails. */
export class Failures {
  readonly first: Failure[] = [];
  readonly newest: Failure[] = [];
  count = 0;
  /** Nothing more is collected. */
  close: () => void = () => undefined;

  /** Collects those of a scheduler that runs. */
  static of(context: PluginContext): Failures {
    const failures = new Failures();
    const { clock, cluster } = context;
    const nameOf = (address: string): string | undefined => cluster.workers.get(address)?.name;
    const taskErred = (task: TaskView): void => failures.add(task, clock.nowMs(), nameOf);
    failures.close = context.get(BRIDGE).observe({ taskErred });
    return failures;
  }

  get summary(): FailureSummary {
    const { first, newest, count } = this;
    return { first, newest, count };
  }

  /** A task failed. One that failed because of another one is named there, if it is among the first ones. */
  add(
    { key, failure, exceptionBlame, erredOn }: TaskView,
    atMs: number,
    nameOf: (address: string) => string | undefined,
  ): void {
    const blamed = exceptionBlame?.key ?? key;
    if (blamed !== key) {
      const cause = [...this.first, ...this.newest].find((one) => one.key === blamed);
      if (cause !== undefined && cause.because.length < NAMED) cause.because.push(key);
      return;
    }
    const text = (failure?.exceptionText ?? '').slice(0, 300);
    const [address = ''] = erredOn;
    const worker = nameOf(address) ?? '';
    const entry: Failure = { key, worker, text, atMs: Math.round(atMs), because: [] };
    this.count++;
    if (this.first.length < KEPT) this.first.push(entry);
    else if (this.newest.push(entry) > KEPT) this.newest.shift();
  }
}

// The cluster in a few tables. O(groups + workers), never O(tasks).

/** Figures of the whole cluster. */
export function totalsOf(cluster: ClusterView): Totals {
  const { tasks, workers, queued, unrunnable } = cluster;
  let finished = 0;
  for (const { stateCounts } of cluster.prefixes.values()) finished += stateCounts.memory;
  return {
    tasks: tasks.size,
    workers: workers.size,
    threads: cluster.totalThreads,
    clients: clientCount(cluster),
    queued: queued.size,
    unrunnable: unrunnable.size,
    occupancyS: rounded(cluster.totalOccupancyS),
    finished,
  };
}

export function prefixRows(
  { prefixes, limits }: ClusterView,
  numbers: PrefixNumbers,
  { overdue }: RunningTasks,
): PrefixRow[] {
  const ratedS = new Map<string, number>();
  for (const { queued, intervalMs = 0 } of limits) {
    const name = queued.peek()?.prefix.name;
    if (name !== undefined) ratedS.set(name, rounded((queued.size * intervalMs) / 1000));
  }
  return Array.from(prefixes.values(), (prefix) => {
    const { name, states, stateCounts, durationAverageS, known, nbytesProduced } = prefix;
    const { released, waiting, queued, processing, memory, erred } = states;
    // A task that runs far longer makes the policies forget the average, and nobody who reads it.
    const durationS = durationAverageS < 0 ? (known?.durationS ?? -1) : durationAverageS;
    return {
      ...{ name, number: numbers.of(name), released, waiting, 'no-worker': states['no-worker'] },
      ...{ queued, processing, memory, erred, finished: stateCounts.memory },
      ...{ durationS: rounded(durationS), producedBytes: nbytesProduced },
      ...{ ratedS: ratedS.get(name) ?? 0, isOverdue: overdue.has(name) },
    };
  });
}

/** Those that have not ended since the last heartbeat. O(tasks that run). */
function runningIn({ workers }: ClusterView): RunningTask[] {
  return [...workers.values()].flatMap(({ address: worker, executing, processing, lastSeenMs }) =>
    Array.from(executing).flatMap(([task, seconds]) => {
      const { key, prefix } = task;
      const startS = lastSeenMs / 1000 - seconds;
      return processing.has(task) ? [{ key, prefix: prefix.name, worker, startS }] : [];
    }),
  );
}

const NO_TRAFFIC = { received: -1, sent: -1, diskWritten: -1, diskRead: -1 };

export function workerRows({ workers }: ClusterView, nowMs: number): WorkerRow[] {
  return Array.from(workers.values(), (worker) => {
    const { address, name, status, threadCount, processing, hasWhat, metrics, memory } = worker;
    const { managed, unmanagedOld, spilled } = memory;
    return {
      ...{ address, name, status, threads: threadCount },
      ...{ processing: processing.size, running: runningCount(worker) },
      ...{ results: hasWhat.size, resultBytes: worker.nbytes },
      ...{ cpuPercent: Math.round(metrics.cpuPercent ?? -1), managed, unmanagedOld, spilled },
      loopDelayMs: Math.round(metrics.loopDelayMs ?? -1),
      bandwidth: Math.round(metrics.bandwidth ?? -1),
      ...(metrics.traffic ?? NO_TRAFFIC),
      unmanagedRecent: Math.max(0, memory.process - managed - unmanagedOld),
      memoryLimit: worker.memoryLimitBytes,
      occupancyS: rounded(worker.occupancyS),
      silentS: Math.max(0, Math.round((nowMs - worker.lastSeenMs) / 1000)),
    };
  });
}

/** To three digits: more would change in every frame. */
function rounded(seconds: number): number {
  return Number(seconds.toPrecision(3));
}

/** Compares a table with what it was. */
export class TableDelta<Row extends object> {
  private rows = new Map<string, Row>();

  /** @param key - the field that names a row */
  constructor(private readonly key: keyof Row) {}

  /** O(fields of all rows). */
  next(rows: readonly Row[]): TableChange<Row> {
    const before = this.rows;
    const changed: Partial<Row>[] = [];
    this.rows = new Map();
    for (const row of rows) {
      const key = String(row[this.key]);
      const old = before.get(key);
      const change = old === undefined ? row : this.changeOf(old, row);
      if (change !== undefined) changed.push(change);
      this.rows.set(key, change === undefined ? (old ?? row) : row);
    }
    const gone = [...before.keys()].filter((key) => !this.rows.has(key));
    return { changed, gone };
  }

  /** The whole table, as a change of an empty one. */
  all(): { readonly changed: readonly Row[]; readonly gone: readonly string[] } {
    return { changed: [...this.rows.values()], gone: [] };
  }

  /** @returns undefined when nothing has changed */
  private changeOf(old: Row, row: Row): Partial<Row> | undefined {
    const changed = (Object.keys(row) as (keyof Row)[]).filter(
      (field) => old[field] !== row[field],
    );
    if (changed.length === 0) return undefined;
    const fields = [this.key, ...changed].map((field) => [field, row[field]]);
    return Object.fromEntries(fields) as Partial<Row>;
  }
}

/** The methods of a WebSocket that the feed uses. */
export interface ViewerSocket {
  /** @param text - a string, or its bytes in UTF-8 */
  send(text: string | Buffer): void;
  terminate(): void;
}

/**
 * One open page. It gets a frame only after it has acknowledged the one before, so that a slow one gets fewer frames
 * and no queue of them.
 */
export class Viewer {
  /** The frame that it has; 0: none. */
  base = 0;
  private sent = 0;
  private sentMs = 0;

  constructor(private readonly socket: ViewerSocket) {}

  get isReady(): boolean {
    return this.sent === this.base;
  }

  /** Milliseconds for which the viewer has not answered. */
  silentMs(nowMs: number): number {
    return this.isReady ? 0 : nowMs - this.sentMs;
  }

  sendFrame(n: number, text: Buffer, nowMs: number): void {
    this.sent = n;
    this.sentMs = nowMs;
    this.socket.send(text);
  }

  acknowledge(n: number): void {
    if (n === this.sent) this.base = n;
  }

  send(text: string): void {
    this.socket.send(text);
  }

  drop(): void {
    this.socket.terminate();
  }
}

/** Undefined when it is not of the form. */
export function readViewerMessage(text: string): PageMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const given = (value ?? {}) as Readonly<Record<string, unknown>>;
  const { type, n, id, atS, fromS, toS, width } = given;
  if (type === 'ack' && isNumber(n)) return { type, n };
  if (type === 'at' && isNumber(atS)) return { type, atS };
  const isWindow = isNumber(fromS) && isNumber(toS) && fromS < toS && isNumber(width);
  if (type === 'stream' && isNumber(id) && isWindow) return { type, id, fromS, toS, width };
  return undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
