import type { Worker } from 'node:worker_threads';
import {
  type ActorCall,
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  type Logger,
  type TaskSlot,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { countOf } from '../../../core/util/values.ts';
import { epochMs } from '../../clocks/system-clock.ts';
import { actorLost, describeFailure } from '../../tasks/index.ts';
import { relayConnection } from '../../transports/tunnel.ts';
import { collectGarbage, collectYoungGarbage, threadBytes } from '../collect-garbage.ts';
import {
  type FromThread,
  postedCall,
  postedTask,
  receivedResult,
  type ToThread,
} from './messages.ts';
import {
  type SpawnSettings,
  spawnThread,
  started,
  type ThreadEnd,
  type ThreadSettings,
} from './spawn.ts';
import { type Job, PendingAnswers, TaskThread } from './task-thread.ts';

/** Settings and callbacks of a pool. */
interface ThreadPoolOptions {
  /** Threads that occupy slots at any time. */
  readonly threadCount: number;
  readonly settings: Omit<ThreadSettings<TaskThread>, 'onSlotChange' | 'onProgress' | 'onGone'>;
  /** Logs the death of threads that ran no task. */
  readonly log: Logger | undefined;
  /** These have not begun, and no thread has them any more. */
  readonly onLeft: (jobs: readonly Job[]) => void;
  /** These had begun on a thread that died of something else. */
  readonly onInterrupted: (jobs: readonly Job[]) => void;
  /** Runs have ended, or threads have come or gone. */
  readonly onChange: () => void;
}

/**
 * The threads that run tasks. A constant number of them takes runs: a thread whose task has seceded to compute
 * on is supplemented by another one, and a thread that dies is replaced.
 */
export class ThreadPool {
  readonly threads = new Set<TaskThread>();
  private hasStarted = false;
  private isClosed = false;

  constructor(private readonly options: ThreadPoolOptions) {}

  /** Starts all threads, as soon as there is something to run: a program that finds its results kept needs none. */
  start(): void {
    if (this.hasStarted) return;
    this.hasStarted = true;
    for (let index = 0; index < this.options.threadCount; index++) this.addThread();
  }

  /**
   * A thread that can begin a run, with as few waiting runs as possible: it may be about to compute. A thread
   * that died before it could start is replaced here, not in a loop.
   */
  idle(): TaskThread | undefined {
    let best: TaskThread | undefined;
    for (const thread of this.threads) {
      if (!thread.isIdle) continue;
      if (thread.waitingCount === 0) return thread;
      if (best === undefined || thread.waitingCount < best.waitingCount) best = thread;
    }
    return best ?? (this.surplus < 0 ? this.addThread() : undefined);
  }

  /**
   * The thread that shall run another task beside those that it has: one that computes nothing now, if all have as
   * many waiting runs.
   */
  leastWaiting(): TaskThread | undefined {
    let best: TaskThread | undefined;
    for (const thread of this.threads) {
      if (thread.isExtra) continue;
      const difference = best === undefined ? -1 : thread.waitingCount - best.waitingCount;
      if (difference < 0 || (difference === 0 && thread.isIdle && best?.isIdle === false)) {
        best = thread;
      }
    }
    return best ?? (this.surplus < 0 ? this.addThread() : undefined);
  }

  /** Ends all threads, whatever they do. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.threads].map((thread) => thread.close()));
  }

  /** Threads beyond `threadCount`, without those that take no runs at present. */
  private get surplus(): number {
    let surplus = -this.options.threadCount;
    for (const thread of this.threads) if (!thread.isExtra) surplus++;
    return surplus;
  }

  /** A thread took the place of each that seceded; when that one counts again, one is too many. */
  private endSurplus(): void {
    if (this.threads.size <= this.options.threadCount || this.surplus <= 0) return;
    for (const thread of this.threads) {
      if (!thread.isIdle || thread.waitingCount > 0) continue;
      this.threads.delete(thread);
      inBackground(thread.close(), 'a thread that is not needed did not close');
      if (this.surplus <= 0) return;
    }
  }

  private addThread(): TaskThread {
    const thread = new TaskThread({
      ...this.options.settings,
      onSlotChange: (changed) => this.onSlotChange(changed),
      onProgress: () => this.onProgress(),
      onGone: (gone, end) => this.onGone(gone, end),
    });
    this.threads.add(thread);
    return thread;
  }

  private onSlotChange(thread: TaskThread): void {
    if (thread.isExtra) this.options.onLeft(thread.takeBack());
    this.onProgress();
  }

  private onProgress(): void {
    this.endSurplus();
    this.options.onChange();
  }

  private onGone(thread: TaskThread, { error, left, interrupted }: ThreadEnd): void {
    const { log, onLeft, onInterrupted, onChange } = this.options;
    this.threads.delete(thread);
    onLeft(left);
    onInterrupted(interrupted);
    if (!this.isClosed) {
      if (error !== undefined) log?.warn({ err: error }, error.message);
      if (interrupted.length > 0) {
        const keys = interrupted.map(({ key }) => key);
        log?.info(
          { keys },
          `a thread ended: ${countOf(keys.length, 'task that waited on it is', 'tasks that waited on it are')} run again`,
        );
      }
      if (thread.hasStarted && this.surplus < 0) this.addThread();
    }
    onChange();
  }
}

interface ActorThreadsSettings extends SpawnSettings {
  /** The clock of the results, in milliseconds. */
  readonly nowMs: () => number;
  /** Upper bound of the threads for actors; further actors share them. */
  readonly threadsMax: number;
  readonly log: Logger | undefined;
  /** An actor is gone with its thread. */
  readonly onLost: (key: string) => void;
}

/**
 * Threads for the actors of a worker, separate from those for tasks, so that tasks do not block an
 * actor. Actors do not block each other either while there are no more of them than threads. A
 * thread without actors is ended.
 */
export class ActorThreads {
  private readonly threads = new Set<ActorThread>();
  private readonly homes = new Map<string, ActorThread>();
  private isClosed = false;

  constructor(private readonly settings: ActorThreadsSettings) {}

  /** Of each thread as of the end of its last call. */
  get memoryBytes(): number {
    let total = 0;
    for (const thread of this.threads) total += thread.memoryBytes;
    return total;
  }

  collectGarbage(): void {
    for (const thread of this.threads) thread.post({ op: 'collect' });
  }

  /** Makes an actor. Never rejects. */
  async make(task: ExecutableTask, actorAt: string, slot: TaskSlot): Promise<ExecutionResult> {
    const { key } = task;
    this.release(key);
    const thread = this.leastUsed();
    this.homes.set(key, thread);
    thread.keys.add(key);
    slot.delay?.(thread.ready);
    const moved: ArrayBuffer[] = [];
    const posted = postedTask(task, moved);
    const result = await thread.ask((id) => ({ op: 'make-actor', id, actorAt, ...posted }), moved);
    if (result.kind !== 'success') this.release(key);
    return result;
  }

  /** Never rejects. */
  call(call: ActorCall): Promise<ExecutionResult> {
    const thread = this.homes.get(call.key);
    if (thread === undefined) {
      return Promise.resolve({ kind: 'failure', error: describeFailure(actorLost(call.key)) });
    }
    const moved: ArrayBuffer[] = [];
    const posted = postedCall(call, moved);
    return thread.ask((id) => ({ op: 'call-actor', id, call: posted }), moved);
  }

  release(key: string): void {
    const thread = this.homes.get(key);
    if (thread === undefined) return;
    this.homes.delete(key);
    thread.keys.delete(key);
    if (thread.keys.size === 0) inBackground(thread.close(), 'a thread of actors did not close');
    else thread.post({ op: 'release-actor', key });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.homes.clear();
    await Promise.all([...this.threads].map((thread) => thread.close()));
  }

  private leastUsed(): ActorThread {
    let best: ActorThread | undefined;
    for (const thread of this.threads) {
      if (thread.isClosed) continue;
      if (best === undefined || thread.keys.size < best.keys.size) best = thread;
    }
    if (best !== undefined && this.threads.size >= this.settings.threadsMax) return best;
    const thread = new ActorThread(this.settings, (error) => this.onGone(thread, error));
    this.threads.add(thread);
    return thread;
  }

  private onGone(thread: ActorThread, error: YardmasterError): void {
    this.threads.delete(thread);
    if (this.isClosed || thread.keys.size === 0) return;
    this.settings.log?.warn({ err: error, actors: [...thread.keys] }, error.message);
    for (const key of thread.keys) {
      this.homes.delete(key);
      this.settings.onLost(key);
    }
  }
}

class ActorThread {
  readonly keys = new Set<string>();
  memoryBytes = 0;
  isClosed = false;
  readonly ready: Promise<void>;
  private readonly worker: Worker;
  private readonly asked = new PendingAnswers();
  private uncaught: unknown;

  constructor(
    private readonly settings: ActorThreadsSettings,
    onGone: (error: YardmasterError) => void,
  ) {
    this.worker = spawnThread('yardmaster-actors', settings);
    this.ready = started(this.worker);
    this.worker.on('message', (message: FromThread) => this.onMessage(message));
    this.worker.on('error', (error) => (this.uncaught = error));
    // The answer in it is lost, and nothing says whose it was.
    this.worker.on('messageerror', (error) => {
      this.uncaught ??= error;
      inBackground(this.close(), 'a thread of actors did not close');
    });
    this.worker.on('exit', (code) => {
      this.isClosed = true;
      const error = this.death(code);
      onGone(error);
      this.asked.failAll(this.lost(error));
    });
  }

  post(message: ToThread, moved: ArrayBuffer[] = []): void {
    this.worker.postMessage(message, moved);
  }

  ask(message: (id: number) => ToThread, moved: ArrayBuffer[]): Promise<ExecutionResult> {
    if (this.isClosed) return Promise.resolve({ kind: 'failure', error: this.lost(undefined) });
    return this.asked.ask(message, (made) => this.post(made, moved));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.worker.terminate();
  }

  private onMessage(message: FromThread): void {
    this.memoryBytes = message.memoryBytes;
    if (message.op === 'connect') {
      relayConnection(message, this.settings.cluster?.transports ?? []);
    } else if (message.op === 'answered') {
      this.asked.settle(message.id, this.inOurTime(receivedResult(message.result)));
    }
  }

  private inOurTime(result: ExecutionResult): ExecutionResult {
    if (result.kind !== 'success') return result;
    const offsetMs = this.settings.nowMs() - epochMs();
    return {
      ...result,
      startMs: result.startMs + offsetMs,
      stopMs: result.stopMs + offsetMs,
    };
  }

  private lost(cause: YardmasterError | undefined): ErrorPayload {
    return describeFailure(actorLost([...this.keys].join(', '), cause));
  }

  private death(exitCode: number): YardmasterError {
    const why =
      this.uncaught instanceof Error ? this.uncaught.message : `it ended with code ${exitCode}`;
    const actors = [...this.keys].join(', ');
    return new YardmasterError(
      'ERR_ACTOR_LOST',
      `the thread of ${actors} died: ${why}`,
      { exitCode },
      { cause: this.uncaught },
    );
  }
}

/** Collections of everything are followed by this many times their own duration without one. */
const PAUSE_RATIO = 5;

/**
 * Collects what tasks leave behind in a thread: copies of inputs, values that were returned, and the thread's
 * hold on the bytes of results. The engine sees no reason to, because there are few of them; but they are
 * large, and memory that is shared is only given back when no thread holds it.
 */
export class IdleCollector {
  private leftBytes = 0;
  /** After the last collection of everything. */
  private calmBytes = threadBytes();
  private nextFullMs = -Infinity;

  /** @param tidyBytes - what may be left behind before it is collected; Infinity: the engine does as it likes */
  constructor(private readonly tidyBytes: number) {}

  /**
   * A task has ended; nothing of it may be on the stack any more.
   * @param nbytes - of its inputs and its result
   */
  taskEnded(nbytes: number): void {
    this.leftBytes += nbytes;
    if (this.leftBytes < this.tidyBytes) return;
    this.leftBytes = 0;
    collectYoungGarbage();
    const isMuch = threadBytes() > this.calmBytes + 2 * this.tidyBytes;
    if (isMuch && performance.now() >= this.nextFullMs) this.collect();
  }

  /** Collects everything. */
  collect(): void {
    const startMs = performance.now();
    collectGarbage();
    const endMs = performance.now();
    this.nextFullMs = endMs + PAUSE_RATIO * (endMs - startMs);
    this.calmBytes = threadBytes();
    this.leftBytes = 0;
  }
}
