import type { Session } from 'node:inspector';
import { pathToFileURL } from 'node:url';
import type { StackFrame } from '../../../core/api/index.ts';
import { epochMs } from '../../clocks/system-clock.ts';
import type { RunOptions, RunSlot, TaskSurroundings } from '../../tasks/index.ts';
import { threadEntry } from './spawn.ts';

export type SlotChange = 'secede' | 'park' | 'rejoin' | 'pause' | 'resume';

/** The methods of a thread that its runs use. */
export interface RunOwner {
  readonly surroundings: TaskSurroundings | undefined;
  /** Tells the pool. */
  slotChanged(run: ThreadRun, change: SlotChange): void;
}

/** The context of a run in a thread. Its signal is made when the task asks for it, or is aborted. */
export class ThreadRun implements RunOptions, RunSlot {
  readonly nowMs = epochMs;
  /** True when it waits for others, so that the thread may begin the next run. */
  isParked = false;
  /** Called when it is parked. */
  onParked: (() => void) | undefined = undefined;
  private controller: AbortController | undefined = undefined;
  private rejoins: (() => void)[] | undefined = undefined;
  private onResumed: (() => void) | undefined = undefined;

  constructor(
    readonly number: number,
    private readonly owner: RunOwner,
    /** It has neither a turn nor a slot that it could give away. */
    private readonly isConcurrent = false,
  ) {
    this.isParked = isConcurrent;
  }

  get slot(): RunSlot {
    return this;
  }

  get surroundings(): TaskSurroundings | undefined {
    return this.owner.surroundings;
  }

  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  abort(): void {
    this.controller ??= new AbortController();
    this.controller.abort();
  }

  secede(): void {
    if (!this.isParked) this.owner.slotChanged(this, 'secede');
  }

  park(): void {
    if (this.isParked) return;
    this.isParked = true;
    this.owner.slotChanged(this, 'park');
    this.onParked?.();
  }

  rejoin(): Promise<void> {
    if (this.isConcurrent) return Promise.resolve();
    return new Promise((resolve) => {
      (this.rejoins ??= []).push(resolve);
      this.owner.slotChanged(this, 'rejoin');
    });
  }

  pause(): void {
    this.owner.slotChanged(this, 'pause');
  }

  resume(): Promise<void> {
    return new Promise((resolve) => {
      this.onResumed = resolve;
      this.owner.slotChanged(this, 'resume');
    });
  }

  resumed(): void {
    this.onResumed?.();
  }

  /** It has a slot again. */
  rejoined(): void {
    this.isParked = false;
    for (const resolve of this.rejoins?.splice(0) ?? []) resolve();
  }
}

/** A thread that computes usually stops within this. */
const USUAL_STOP_MS = 250;
/** Milliseconds for a thread whose event loop is busy: on a busy machine it is scheduled late. */
const STOP_MS = 3000;
/** Share of the time for which the event loop of a thread that computes is busy. */
const BUSY_SHARE = 0.5;
const ATTACH_MS = 2000;
/** Upper bound of the innermost calls in an answer. */
const FRAMES_MAX = 50;

interface PausedFrame {
  readonly functionName: string;
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number;
  };
}

/** Notifications of the inspector of a thread. */
type Notification =
  | {
      readonly method: 'Debugger.scriptParsed';
      readonly params: { readonly scriptId: string; readonly url: string };
    }
  | {
      readonly method: 'Debugger.paused';
      readonly params: { readonly callFrames: readonly PausedFrame[] };
    }
  | { readonly method?: undefined };

/** Threads by id, with the milliseconds for which the event loop of each has been busy. */
type WatchedThreads = ReadonlyMap<number, () => number>;

/** One look at a time: threads are stopped for it. */
let looking: Promise<unknown> = Promise.resolve();

/**
 * The call stacks of threads of this process, by their id: no frames for those that wait, no entry for
 * those that did not stop in time. Each is stopped for a moment by Node's inspector, which runs in this
 * thread.
 *
 * @throws Error when there is no inspector
 */
export function stacksOf(
  threads: WatchedThreads,
): Promise<ReadonlyMap<number, readonly StackFrame[]>> {
  const look = looking.then(() => lookAt(threads));
  looking = look.catch(() => undefined);
  return look;
}

async function lookAt(
  threads: WatchedThreads,
): Promise<ReadonlyMap<number, readonly StackFrame[]>> {
  if (threads.size === 0) return new Map();
  const { Session: Inspector } = await import('node:inspector');
  const session = new Inspector();
  session.connect();
  const inspection = new Inspection(session, threads);
  try {
    return await inspection.run();
  } finally {
    await inspection.end();
    session.disconnect(); // Resumes threads that are still stopped.
  }
}

class Inspection {
  private readonly stacks = new Map<number, readonly StackFrame[]>();
  /** Threads by the id of their session. */
  private readonly attached = new Map<string, number>();
  /** Urls of scripts, by session and id of the script. */
  private readonly urls = new Map<string, string>();
  private nextId = 0;
  private onChange: () => void = () => undefined;

  constructor(
    private readonly session: Session,
    private readonly threads: WatchedThreads,
  ) {
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      // There is no other place where the id of the thread can be read.
      const threadId = Number(/^\[worker (\d+)\]/.exec(params.workerInfo.title)?.[1]);
      if (!threads.has(threadId)) return;
      this.attached.set(params.sessionId, threadId);
      this.onChange();
    });
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      this.onMessage(params.sessionId, params.message);
    });
  }

  async run(): Promise<ReadonlyMap<number, readonly StackFrame[]>> {
    const { threads, attached, stacks } = this;
    await this.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await this.until(ATTACH_MS, () => attached.size >= threads.size);
    for (const sessionId of attached.keys()) {
      await this.send(sessionId, 'Debugger.enable');
      await this.send(sessionId, 'Debugger.pause');
    }
    const before = new Map([...threads].map(([id, busyMs]) => [id, busyMs()]));
    await this.until(USUAL_STOP_MS, () => stacks.size >= attached.size);
    const computing: number[] = [];
    for (const [id, busyMs] of threads) {
      if (stacks.has(id)) continue;
      if (busyMs() - (before.get(id) ?? 0) > BUSY_SHARE * USUAL_STOP_MS) computing.push(id);
      else stacks.set(id, []);
    }
    await this.until(STOP_MS, () => computing.every((id) => stacks.has(id)));
    return new Map(stacks);
  }

  /** Nothing is stopped any more. */
  async end(): Promise<void> {
    try {
      for (const sessionId of this.attached.keys()) await this.send(sessionId, 'Debugger.disable');
      await this.post('NodeWorker.disable', {});
    } catch {
      // A thread has ended meanwhile; disconnecting releases the others.
    }
  }

  private onMessage(sessionId: string, text: string): void {
    const threadId = this.attached.get(sessionId);
    if (threadId === undefined) return;
    const notification = JSON.parse(text) as Notification;
    if (notification.method === 'Debugger.scriptParsed') {
      this.urls.set(`${sessionId}/${notification.params.scriptId}`, notification.params.url);
    } else if (notification.method === 'Debugger.paused') {
      void this.send(sessionId, 'Debugger.resume').catch(() => undefined); // Or it has ended.
      const frames = notification.params.callFrames.map((frame) => this.frameOf(sessionId, frame));
      const seen = frames.filter(({ url }) => isOfTask(url));
      this.stacks.set(threadId, seen.slice(0, FRAMES_MAX));
      this.onChange();
    }
  }

  private frameOf(sessionId: string, { functionName: name, location }: PausedFrame): StackFrame {
    const { scriptId, lineNumber, columnNumber = 0 } = location;
    const url = this.urls.get(`${sessionId}/${scriptId}`) ?? '';
    return { name, url, line: lineNumber + 1, column: columnNumber + 1 };
  }

  private send(sessionId: string, method: string): Promise<void> {
    const message = JSON.stringify({ id: ++this.nextId, method });
    return this.post('NodeWorker.sendMessageToWorker', { sessionId, message });
  }

  private post(method: string, parameters: object): Promise<void> {
    return new Promise((resolve, reject) => {
      this.session.post(method, parameters, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  }

  private until(limitMs: number, isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.onChange = () => {
        if (!isSo()) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Neither Node's own nor what runs tasks. */
export function isOfTask(url: string): boolean {
  return url !== '' && !url.startsWith('node:') && !url.startsWith(bundleFolder());
}

function bundleFolder(): string {
  return new URL('./', pathToFileURL(threadEntry())).href;
}
