import type { PluginContext, Timer } from '../../../core/api/index.ts';
import { Failures } from './failures.ts';
import { PrefixNumbers } from './prefix-numbers.ts';
import { prefixRows, totalsOf, workerRows } from './snapshot.ts';
import { type StreamRequest, streamWindow } from './stream-window.ts';
import { TableDelta } from './table-delta.ts';
import { TaskRecorder } from './task-recorder.ts';
import { readViewerMessage, Viewer, type ViewerSocket } from './viewer.ts';
import { waitingIn } from './waiting.ts';

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

/** How much is remembered, and when. */
export interface FeedOptions {
  readonly history: number;
  readonly recordsAlways: boolean;
}

/**
 * What open pages are sent: figures by prefix and by worker, only those that changed, and the part of the task stream
 * that is shown. A frame is made once for all viewers. Without a viewer there is no timer and no hook.
 */
export class Feed {
  private readonly viewers = new Set<Viewer>();
  private readonly numbers = new PrefixNumbers();
  private readonly recorder: TaskRecorder;
  private readonly failures: Failures;
  private readonly prefixes = new TableDelta();
  private readonly workers = new TableDelta();
  private frame = 0;
  private nextMs = 0;
  private idleSinceMs = 0;
  private timer: Timer | undefined;
  private stopRecording: (() => void) | undefined;
  private recordingSinceMs = 0;
  /** The part of the task stream that was made last. */
  private latest:
    { readonly asked: string; readonly atMs: number; readonly text: string } | undefined;

  constructor(
    private readonly context: PluginContext,
    { history, recordsAlways }: FeedOptions,
  ) {
    this.recorder = new TaskRecorder(history, this.numbers);
    this.failures = Failures.of(context.events, () => context.clock.nowMs());
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

  /** What a page sent. */
  receive(viewer: Viewer, text: string): void {
    const message = readViewerMessage(text);
    if (message === undefined || message.type === 'at') this.drop(viewer);
    else if (message.type === 'ack') viewer.acknowledge(message.n);
    else {
      viewer.send(`{"type":"stream","id":${message.id},${this.windowFor(message).slice(1)}`);
    }
  }

  /** Made once for pages that follow the same frame. */
  private windowFor({ fromS, toS, width }: StreamRequest): string {
    const asked = `${fromS} ${toS} ${width}`;
    const nowMs = this.context.clock.nowMs();
    if (this.latest?.asked === asked && nowMs - this.latest.atMs < FRAME_MS)
      return this.latest.text;
    const since = Math.round(this.recordingSinceMs) / 1000;
    const window = streamWindow(this.recorder, { fromS, toS, width });
    const text = JSON.stringify({ since, ...window });
    this.latest = { asked, atMs: nowMs, text };
    return text;
  }

  /** A page was closed. */
  leave(viewer: Viewer): void {
    if (this.viewers.delete(viewer)) this.idleSinceMs = this.context.clock.nowMs();
  }

  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.stopRecording?.();
    this.stopRecording = undefined;
    for (const viewer of this.viewers) viewer.drop();
    this.viewers.clear();
  }

  private drop(viewer: Viewer): void {
    this.leave(viewer);
    viewer.drop();
  }

  private record(): void {
    if (this.stopRecording !== undefined) return;
    this.stopRecording = this.context.observe(this.recorder.hooks);
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
    const common = {
      ...{ type: 'state', n, nowS: nowMs / 1000, totals: totalsOf(cluster) },
      waiting: waitingIn(cluster),
      failures: this.failures.summary,
    };
    const prefixes = this.prefixes.next(prefixRows(cluster, this.numbers));
    const workers = this.workers.next(workerRows(cluster, nowMs));
    const change = Buffer.from(JSON.stringify({ ...common, prefixes, workers }));
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

  private wholeFrame(common: object): Buffer {
    const all = { prefixes: this.prefixes.all(), workers: this.workers.all() };
    return Buffer.from(JSON.stringify({ ...common, isWhole: true, ...all }));
  }

  private rest(nowMs: number): void {
    if (nowMs - this.idleSinceMs < LINGER_MS) return;
    this.timer?.cancel();
    this.timer = undefined;
    if (this.recordsAlways) return;
    this.stopRecording?.();
    this.stopRecording = undefined;
  }
}
