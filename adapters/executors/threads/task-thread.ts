import type { Worker } from 'node:worker_threads';

import {
  type Clock,
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { epochMs } from '../../clocks/epoch.ts';
import { type ClusterReach, describeFailure } from '../../tasks/index.ts';
import { relayConnection } from '../../transports/tunnel/index.ts';
import { StartedRuns } from './started-runs.ts';
import type { Job } from './job.ts';
import { postedTask, readResults, RunWriter } from './run-queue.ts';
import type { FromThread, ResultColumns, ToThread } from './messages.ts';
import { PendingAnswers } from './pending-answers.ts';
import { spawnThread } from './spawn.ts';

export interface ThreadSettings {
  readonly clock: Clock;
  /** Megabytes of the heap of each thread; undefined: Node's default. */
  readonly heapLimitMb: number | undefined;
  /** Bytes that its tasks may leave behind; undefined: the engine does as it likes. */
  readonly tidyBytes: number | undefined;
  /** Milliseconds for an aborted task to end. */
  readonly abortGraceMs: number;
  /** What its tasks reach; undefined: nothing. */
  readonly cluster: ClusterReach | undefined;
  /** Called when the task secedes from the thread slots, and when it rejoins. */
  readonly onSecede: (thread: TaskThread, hasSeceded: boolean) => void;
  /** Runs have ended. */
  readonly onProgress: (thread: TaskThread) => void;
  /**
   * Called when the thread has ended. `error` is undefined if it was closed, or if its task has
   * received the error. `left` are the runs that had not begun, or whose outcome was not reported.
   */
  readonly onGone: (
    thread: TaskThread,
    error: YardmasterError | undefined,
    left: readonly Job[],
  ) => void;
}

/** What a thread runs. */
interface Running {
  readonly threadId: number;
  /** Of the task. */
  readonly key: string;
  /** Milliseconds for which its event loop has been busy. */
  readonly busyMs: () => number;
}

/**
 * One thread, which runs one task after the other, those first that came first. When it dies the task
 * that it was running fails, and it is of no more use.
 */
export class TaskThread {
  private readonly worker: Worker;
  private readonly begun = new StartedRuns();
  private readonly writer = new RunWriter();
  /** What was handed over and has not ended, in order. */
  private line: Job[] = [];
  /** Number of the run that was handed over last. */
  private last = 0;
  /** What `left` was at the last look. */
  private leftBefore = 0;
  private readonly asked = new PendingAnswers();
  private wasReady = false;
  private usedBytes = 0;
  /** It was asked to collect garbage and has not answered. */
  private isCollecting = false;
  private isClosed = false;
  private uncaught: unknown = undefined;

  constructor(private readonly settings: ThreadSettings) {
    this.worker = spawnThread('yardmaster-tasks', settings, this.begun.memory);
    this.worker.on('message', (message: FromThread) => this.onMessage(message));
    this.worker.on('messageerror', (error) => this.failAll('sent nonsense', error));
    this.worker.on('error', (error) => (this.uncaught = error));
    this.worker.on('exit', (code) => this.onExit(code));
  }

  get isIdle(): boolean {
    return this.line.length === 0;
  }

  /** Runs that it has, the present one included. */
  get length(): number {
    return this.line.length;
  }

  /** Whether short runs may be queued behind its present runs. */
  get takesShort(): boolean {
    const [present] = this.line;
    return present === undefined || (present.isShort && !present.isAborted);
  }

  /** Whether it ever got so far that it could run a task. */
  get hasStarted(): boolean {
    return this.wasReady;
  }

  /** Bytes of JavaScript that the thread reported last. */
  get memoryBytes(): number {
    return this.usedBytes;
  }

  /** Asks it to collect garbage, unless it was asked already. */
  collectGarbage(): void {
    if (this.isCollecting) return;
    this.isCollecting = true;
    this.post({ op: 'collect' });
  }

  /** Hands over runs, all of them in one message. */
  hand(jobs: readonly Job[]): void {
    const moved: ArrayBuffer[] = [];
    try {
      const tasks = jobs.map((job) => job.task);
      this.worker.postMessage(
        { op: 'run', ...this.writer.write(this.last + 1, tasks, moved) },
        moved,
      );
    } catch (thrown) {
      this.writer.forget();
      // One of them is to blame; the others can go.
      if (jobs.length > 1) for (const job of jobs) this.hand([job]);
      else jobs[0]?.end({ kind: 'failure', error: describeFailure(thrown) });
      return;
    }
    for (const job of jobs) {
      job.thread = this;
      job.number = ++this.last;
      this.line.push(job);
    }
    this.leftBefore = -1;
    const [job] = jobs;
    if (job?.isAborted === true) this.tellAbort(job);
  }

  /** Takes back what has not begun, in order. */
  takeBack(): Job[] {
    const count = this.begun.takeBack(this.last);
    return count === 0 ? [] : this.line.splice(this.line.length - count);
  }

  /**
   * Whether runs are queued and none has begun since the last call. False while the thread starts.
   */
  isHeldUp(): boolean {
    if (!this.wasReady) return false;
    const left = this.begun.left(this.last);
    const isHeldUp = left > 0 && left === this.leftBefore;
    this.leftBefore = left;
    return isHeldUp;
  }

  /** Aborts a run. If the task does not end within the grace period, its thread is terminated. */
  tellAbort(job: Job): void {
    const { clock, abortGraceMs } = this.settings;
    this.post({ op: 'abort', number: job.number });
    if (abortGraceMs === Infinity) return;
    job.graceMs = job.abortReason?.killTimeoutMs ?? abortGraceMs;
    const kill = (): void => {
      if (job.isOver) return;
      job.isKilled = true;
      inBackground(this.worker.terminate(), 'a thread could not be terminated');
    };
    job.giveGrace(clock.setTimer(job.graceMs, kill));
  }

  /** Id within the process, and key of the task that it runs. */
  get running(): Running | undefined {
    const begunCount = this.line.length - this.begun.left(this.last);
    const key = this.line[begunCount - 1]?.task.key;
    return key === undefined
      ? undefined
      : {
          threadId: this.worker.threadId,
          key,
          busyMs: () => this.worker.performance.eventLoopUtilization().active,
        };
  }

  /** Runs a function beside the task, when that lets it. */
  runAside(task: ExecutableTask): Promise<ExecutionResult> {
    const moved: ArrayBuffer[] = [];
    const posted = postedTask(task, moved);
    return this.asked.ask(
      (id) => ({ op: 'run-aside', id, ...posted }),
      (message) => this.worker.postMessage(message, moved),
    );
  }

  /** Ends the thread, whatever it does. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.worker.terminate();
  }

  private post(message: ToThread): void {
    this.worker.postMessage(message);
  }

  private onMessage(message: FromThread): void {
    this.usedBytes = message.memoryBytes;
    switch (message.op) {
      case 'ready':
        this.wasReady = true;
        return;
      case 'collected':
        this.isCollecting = false;
        return;
      case 'connect':
        relayConnection(message, this.settings.cluster?.transports ?? []);
        return;
      case 'done':
        return this.onResults(message);
      case 'secede':
      case 'rejoin':
        return this.onPlace(message.op);
      case 'answered':
        return this.asked.settle(message.id, message.result);
    }
  }

  private onResults(columns: ResultColumns): void {
    const offsetMs = this.settings.clock.nowMs() - epochMs();
    let ended = 0;
    readResults(columns, offsetMs, (number, result) => {
      const job = this.line[ended];
      if (job?.number !== number) return;
      ended++;
      job.end(result);
    });
    this.line.splice(0, ended);
    this.settings.onProgress(this);
  }

  private onPlace(request: 'secede' | 'rejoin'): void {
    const [job] = this.line;
    if (job === undefined) return;
    if (request === 'secede') {
      this.settings.onSecede(this, true);
      job.slot?.secede();
      return;
    }
    const back = (job.slot?.rejoin() ?? Promise.resolve()).then(() => {
      if (this.line[0] !== job) return;
      this.settings.onSecede(this, false);
      this.post({ op: 'rejoined' });
    });
    inBackground(back, (error) => job.end({ kind: 'failure', error: describeFailure(error) }));
  }

  private onExit(code: number): void {
    const { line } = this;
    const begunCount = line.length - this.begun.takeBack(this.last);
    const present = line.find((job) => job.isKilled) ?? line[begunCount - 1];
    const error = this.isClosed ? undefined : this.death(code, present);
    this.asked.failAll(describeFailure(error ?? new YardmasterError('ERR_CLOSED', 'it closed')));
    // The thread died before it reported the outcome of these runs, or before it began them.
    const left = line.filter((job) => job !== present);
    this.line = [];
    if (present !== undefined) {
      const cause = error ?? closedError(present.task.key);
      present.end({ kind: 'failure', error: describeFailure(cause) });
    }
    this.settings.onGone(this, present === undefined ? error : undefined, left);
  }

  private death(code: number, job: Job | undefined): YardmasterError {
    const { uncaught } = this;
    const data = { exitCode: code, ...(job === undefined ? {} : { key: job.task.key }) };
    const who = job === undefined ? 'an idle thread' : `the thread of "${job.task.key}"`;
    if (job?.isKilled === true) {
      const message = `${who} was ended: the task was aborted and continued for ${job.graceMs} ms; check currentTask().signal in it`;
      return new YardmasterError('ERR_CANCELLED', message, data);
    }
    if (uncaught === undefined) {
      const message = `${who} ended with exit code ${code} before the task returned; tasks must not call process.exit()`;
      return new YardmasterError('ERR_TASK', message, data);
    }
    const cause = uncaught as { code?: string; message?: string };
    const why =
      cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? 'ran out of memory; give threads a larger heap, or make the task smaller'
        : `died of an error that nothing caught: ${cause.message ?? typeof uncaught}`;
    return new YardmasterError('ERR_TASK', `${who} ${why}`, data, { cause: uncaught });
  }

  private failAll(what: string, cause: unknown): void {
    const jobs = [...this.line];
    this.takeBack();
    this.line = [];
    for (const job of jobs) job.end({ kind: 'failure', error: failure(job, what, cause) });
    this.settings.onProgress(this);
  }
}

/** What a run ends with when the executor closes. */
export function closedResult(key: string): ExecutionResult {
  return { kind: 'failure', error: describeFailure(closedError(key)) };
}

function closedError(key: string): YardmasterError {
  return new YardmasterError('ERR_CLOSED', `the executor closed before "${key}" was done`, { key });
}

function failure({ task: { key } }: Job, what: string, cause: unknown): ErrorPayload {
  const message = `the thread of "${key}" ${what}`;
  return describeFailure(new YardmasterError('ERR_TASK', message, { key }, { cause }));
}
