import type { Worker } from 'node:worker_threads';
import {
  type AbortRun,
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  type TaskSlot,
  type Timer,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { epochMs } from '../../clocks/system-clock.ts';
import { describeFailure } from '../../tasks/index.ts';
import { relayConnection } from '../../transports/tunnel.ts';
import {
  type FromThread,
  type PostedResults,
  postedTask,
  receivedResult,
  type ToThread,
} from './messages.ts';
import { readResults, RunWriter, WaitingRuns } from './run-queue.ts';
import { type Running, spawnThread, started, type ThreadSettings } from './spawn.ts';
import { abandonedError, causeOfDeath, closedError, deathError, failed } from './thread-errors.ts';

/** Milliseconds for a thread to show that its event loop turns, before a run on it is taken to block it. */
const BLOCKED_MS = 500;

/**
 * One thread. It runs one task after the other, those first that came first. A task that waits for others is
 * parked: it stays on the thread, and the next one begins meanwhile, so that waiting needs no thread.
 *
 * When the thread dies, the task that was the cause fails, and parked tasks are run again on another thread: they
 * lose what they had computed. The alternative, a thread for each task that waits, was measured: 50 tasks that
 * each await one of 20 ms took 6 s and 4.6 s of CPU on two threads; parked, they take 0.6 s (0.5 s of it are the
 * awaited tasks themselves) and 0.2 s of CPU.
 */
export class TaskThread {
  private readonly worker: Worker;
  private readonly begun = new StartedRuns();
  private readonly writer = new RunWriter();
  /** The jobs that were handed over and have neither ended nor been parked, in order. */
  private line: Job[] = [];
  private readonly waiting = new WaitingRuns();
  /** Runs whose places are free although their code goes on, by their number; with a timer while it may. */
  private readonly abandoned = new Map<number, { readonly job: Job; grace: Timer | undefined }>();
  /** Number of the run that was handed over last. */
  private last = 0;
  /** Number of the concurrent run that was begun last: negative. */
  private lastConcurrent = 0;
  /** The value of `left` at the last look. */
  private leftBefore = 0;
  private readonly asked = new PendingAnswers();
  private wasReady = false;
  private readonly ready: Promise<void>;
  private usedBytes = 0;
  /** It was asked to collect garbage and has not answered. */
  private isCollecting = false;
  /** Runs that have ended, in their order, while a profiler wants them; its reader empties it. */
  ranTasks: { readonly key: string; readonly startMs: number; stopMs: number }[] | undefined;
  private isClosed = false;
  /** It is being ended; what it still sends counts, and nothing is given to it any more. */
  private isEnding = false;
  private uncaught: unknown = undefined;

  constructor(private readonly settings: ThreadSettings<TaskThread>) {
    this.worker = spawnThread('yardmaster-tasks', settings, this.begun.memory);
    this.ready = started(this.worker);
    this.worker.on('message', (message: FromThread) => this.onMessage(message));
    this.worker.on('error', (error) => (this.uncaught = error));
    this.worker.on('messageerror', (error) => this.onUnreadable(error));
    this.worker.on('exit', (code) => this.onExit(code));
  }

  /** True when a run can begin at once. */
  get isIdle(): boolean {
    return this.line.length === 0 && this.waiting.resumedCount === 0 && !this.isLeaving;
  }

  /** Runs that it has to run one after the other, the present one included. */
  get length(): number {
    return this.line.length;
  }

  /** Runs that wait here for others, or have continued after a wait. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  /** True when it does not count among the threads that take runs: it leaves, or a run on it has seceded. */
  get isExtra(): boolean {
    if (this.isLeaving || this.waiting.secededCount > 0) return true;
    return this.line[0]?.slotState === 'seceded';
  }

  /** True when short runs may be queued behind its present runs. */
  get takesShort(): boolean {
    if (this.waiting.resumedCount > 0 || this.isLeaving) return false;
    const [present] = this.line;
    return present === undefined || (present.isShort && !present.isAborted);
  }

  /** True when it ever got so far that it could run a task. */
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
      else jobs[0]?.end(failed(thrown));
      return;
    }
    for (const job of jobs) {
      job.thread = this;
      job.number = ++this.last;
      job.slotState = 'occupied';
      this.line.push(job);
      if (!this.wasReady) job.slot.delay?.(this.ready);
    }
    this.leftBefore = -1;
    const [job] = jobs;
    if (job?.isAborted === true) this.abort(job);
  }

  /** Begins a run at once, beside the others. */
  begin(job: Job): void {
    const moved: ArrayBuffer[] = [];
    job.thread = this;
    job.number = --this.lastConcurrent;
    job.slotState = 'parked';
    if (!this.wasReady) job.slot.delay?.(this.ready);
    try {
      const posted = postedTask(job.task, moved);
      this.worker.postMessage({ op: 'begin', number: job.number, ...posted }, moved);
    } catch (thrown) {
      job.end(failed(thrown));
      return;
    }
    this.waiting.add(job);
    if (job.isAborted) this.abort(job);
  }

  /** Takes back what has not begun, in order. */
  takeBack(): Job[] {
    const count = this.begun.takeBack(this.last);
    return count === 0 ? [] : this.line.splice(this.line.length - count);
  }

  /**
   * True when runs are queued and none has begun since the last call. False while the thread starts.
   */
  isHeldUp(): boolean {
    if (!this.wasReady) return false;
    const left = this.begun.left(this.last);
    const isHeldUp = left > 0 && left === this.leftBefore;
    this.leftBefore = left;
    return isHeldUp;
  }

  abort(job: Job): void {
    const { clock, killGraceMs } = this.settings;
    this.post({ op: 'abort', number: job.number });
    // Where threads are never ended, no time of a single run ends one either.
    const mayEnd = killGraceMs < Infinity;
    job.graceMs = mayEnd ? (job.abortReason?.killTimeoutMs ?? killGraceMs) : Infinity;
    if (job.abortReason?.isGivenUp === true) {
      const { number, graceMs } = job;
      this.abandon(
        job,
        clock.setTimer(graceMs, () => this.endGrace(number)),
      );
      return;
    }
    if (job.graceMs === Infinity) return;
    job.giveGrace(clock.setTimer(job.graceMs, () => this.endByForce(job)));
  }

  get threadId(): number {
    return this.worker.threadId;
  }

  /** The tasks that it runs. */
  get running(): readonly Running[] {
    const { threadId, performance } = this.worker;
    const busyMs = (): number => performance.eventLoopUtilization().active;
    const begunCount = this.line.length - this.begun.left(this.last);
    const present = this.line[begunCount - 1];
    const waiting = Array.from(this.waiting.jobs(), (job) => {
      const isWaiting = present !== undefined || job.slotState === 'parked';
      return { threadId, key: job.key, isWaiting, busyMs };
    });
    if (present === undefined) return waiting;
    return [{ threadId, key: present.key, isWaiting: false, busyMs }, ...waiting];
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

  /** True when it takes no runs: it is being ended, or will be unless what was given up on it comes to its end. */
  private get isLeaving(): boolean {
    return this.isEnding || this.abandoned.size > 0;
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
      case 'park':
        return this.onSlotLeft(message.number, message.op === 'park');
      case 'rejoin':
        return this.onRejoin(message.number);
      case 'pause':
        return this.jobOf(message.number)?.slot.pause?.();
      case 'resume':
        return this.onResume(message.number);
      case 'turning':
        return this.onTurning(message.number);
      case 'answered':
        return this.asked.settle(message.id, receivedResult(message.result));
    }
  }

  private onResults(posted: PostedResults): void {
    const offsetMs = this.settings.clock.nowMs() - epochMs();
    const wasExtra = this.isExtra;
    let ended = 0;
    readResults(posted, offsetMs, (number, result) => {
      const job = this.line[ended];
      if (this.ranTasks !== undefined && result.kind === 'success')
        this.remember(
          job?.number === number ? job : this.waiting.get(number),
          result.startMs - offsetMs,
          result.stopMs - offsetMs,
        );
      if (job?.number === number) {
        ended++;
        job.end(result);
      } else if (!this.endAbandoned(number)) this.waiting.take(number)?.end(result);
    });
    this.line.splice(0, ended);
    this.endWhenAbandoned();
    if (this.isExtra !== wasExtra) this.settings.onSlotChange(this);
    this.settings.onProgress(this);
  }

  /** Of many short runs one in a millisecond is remembered, which stands for its neighbours. */
  private remember(job: Job | undefined, startMs: number, stopMs: number): void {
    const last = this.ranTasks?.at(-1);
    if (last !== undefined && stopMs - last.startMs < 1) last.stopMs = stopMs;
    else if (job !== undefined) this.ranTasks?.push({ key: job.key, startMs, stopMs });
  }

  private jobOf(number: number): Job | undefined {
    const [present] = this.line;
    return present?.number === number ? present : this.waiting.get(number);
  }

  private onSlotLeft(number: number, isParked: boolean): void {
    const job = this.jobOf(number);
    if (job === undefined) return;
    if (isParked && job === this.line[0]) this.waiting.add(this.line.shift() as Job);
    this.setSlotState(job, isParked ? 'parked' : 'seceded');
    job.slot.secede();
    if (isParked) this.settings.onProgress(this);
  }

  private onRejoin(number: number): void {
    const job = this.jobOf(number);
    if (job === undefined) {
      if (this.abandoned.has(number)) this.post({ op: 'rejoined', number });
      return;
    }
    const back = job.slot.rejoin().then(() => {
      if (this.jobOf(number) !== job) return;
      this.setSlotState(job, 'occupied');
      this.post({ op: 'rejoined', number });
    });
    inBackground(back, (error) => job.end(failed(error)));
  }

  private onResume(number: number): void {
    const resumed = this.jobOf(number)?.slot.resume?.() ?? Promise.resolve();
    inBackground(
      resumed.then(() => this.post({ op: 'resumed', number })),
      `run ${number} of a thread is not resumed`,
    );
  }

  private setSlotState(job: Job, state: Job['slotState']): void {
    const wasExtra = this.isExtra;
    this.waiting.setState(job, state);
    if (this.isExtra !== wasExtra) this.settings.onSlotChange(this);
  }

  /**
   * The run was aborted and its grace period is over. Its thread is ended when it has no other run, or when
   * this one blocks it; else the run is given up, and its thread ends with the other runs on it.
   */
  private endByForce(job: Job): void {
    if (job.isOver) return;
    if (this.line.length + this.waiting.size <= 1) return this.kill(job);
    // It cannot be what blocks the thread: it waits, or another run has its turn.
    if (job.isConcurrent ? this.line.length > 0 : job.slotState === 'parked') {
      return this.abandon(job);
    }
    this.post({ op: 'are-you-turning', number: job.number });
    job.giveGrace(this.settings.clock.setTimer(BLOCKED_MS, () => this.kill(job)));
  }

  private onTurning(number: number): void {
    const job = this.jobOf(number);
    if (job !== undefined && !job.isOver) this.abandon(job);
    const abandoned = this.abandoned.get(number);
    if (abandoned === undefined) return;
    abandoned.grace?.cancel();
    abandoned.grace = undefined;
    this.endWhenAbandoned();
  }

  private kill(job: Job): void {
    if (job.isOver) return;
    job.isKilled = true;
    this.terminate();
  }

  /**
   * Its place is free from now on.
   * @param grace - of a run that was given up: it runs while the code may continue, whatever else is on the thread, and
   *   the run ends with its code. Default: the code may not, and the run has ended
   */
  private abandon(job: Job, grace?: Timer): void {
    if (job === this.line[0]) this.line.shift();
    else this.waiting.take(job.number);
    this.abandoned.set(job.number, { job, grace });
    // If it waits for a slot, it need not: it shall come to its end.
    this.post({ op: 'rejoined', number: job.number });
    if (grace === undefined) job.end(failed(abandonedError(job)));
    this.settings.onSlotChange(this);
    this.endWhenAbandoned();
  }

  /** The code of an abandoned run has ended. Returns false when it is none. */
  private endAbandoned(number: number): boolean {
    const abandoned = this.abandoned.get(number);
    if (abandoned === undefined) return false;
    const { job, grace } = abandoned;
    grace?.cancel();
    this.abandoned.delete(number);
    job.end(failed(abandonedError(job)));
    return true;
  }

  /** A run that was given up has had its time. Its thread ends when it has no other run, or when this one blocks it. */
  private endGrace(number: number): void {
    const abandoned = this.abandoned.get(number);
    if (abandoned === undefined) return;
    abandoned.grace = undefined;
    if (this.waiting.size === 0) return this.endWhenAbandoned();
    this.post({ op: 'are-you-turning', number });
    abandoned.grace = this.settings.clock.setTimer(BLOCKED_MS, () => this.terminate());
  }

  /** The code of cancelled runs ends as soon as no other run uses the thread and its time is over. */
  private endWhenAbandoned(): void {
    if (this.abandoned.size === 0 || this.line.length + this.waiting.size > 0) return;
    for (const { grace } of this.abandoned.values()) if (grace !== undefined) return;
    this.terminate();
  }

  private terminate(): void {
    this.isEnding = true;
    inBackground(this.worker.terminate(), 'a thread could not be terminated');
  }

  /** Nobody knows which of its runs it spoke of: it dies of it, and what it ran ends as with any other death. */
  private onUnreadable(error: Error): void {
    this.uncaught ??= error;
    inBackground(this.worker.terminate(), 'a thread could not be terminated');
  }

  private onExit(code: number): void {
    const { line, isClosed, uncaught } = this;
    const hasAbandoned = this.abandoned.size > 0;
    for (const number of [...this.abandoned.keys()]) this.endAbandoned(number);
    const begunCount = line.length - this.begun.takeBack(this.last);
    const waiting = [...this.waiting.jobs()];
    // The run for which it is ended may have come to its end meanwhile.
    const isKilled = [...line, ...waiting].some((job) => job.isKilled);
    const isOnPurpose = isClosed || hasAbandoned || (this.isEnding && !isKilled);
    const { culprit } = this.begun;
    const cause = causeOfDeath({ line, begunCount, waiting, culprit, isOnPurpose });
    const unclear = cause === undefined ? waiting : [];
    const error = isOnPurpose ? undefined : deathError(code, uncaught, cause, unclear);
    this.asked.failAll(describeFailure(error ?? new YardmasterError('ERR_CLOSED', 'it closed')));
    this.line = [];
    this.waiting.clear();
    if (cause !== undefined) cause.end(failed(error ?? closedError(cause.key)));
    const interrupted: Job[] = [];
    for (const job of waiting) {
      if (job === cause) continue;
      // A run that has been near two deaths is taken to be the cause.
      if (unclear.length > 0 && error !== undefined && job.wasSuspected) job.end(failed(error));
      else interrupted.push(job);
      job.wasSuspected ||= unclear.length > 0 && error !== undefined;
    }
    this.settings.onGone(this, {
      error: cause === undefined ? error : undefined,
      // The thread died before it reported the outcome of these runs, or before it began them.
      left: line.filter((job) => job !== cause),
      interrupted,
    });
  }
}

/** The methods of a thread that its jobs use. */
interface JobThread {
  /** Takes back the jobs that have not begun, in order. */
  takeBack(): Job[];
  /** Aborts the job. One that continues after its grace period is ended by force. */
  abort(job: Job): void;
}

/**
 * Says whether a run occupies a slot: `occupied`; `seceded`: it continues without a slot and may compute, so its
 * thread takes nothing else; `parked`: it waits without a slot, and its thread runs others meanwhile.
 */
export type SlotState = 'occupied' | 'seceded' | 'parked';

/** One run, from when the pool gets it to its end. */
export class Job {
  thread: JobThread | undefined = undefined;
  /** Its place in the order of that thread's runs. */
  number = 0;
  slotState: SlotState = 'occupied';
  isAborted = false;
  /** The reason that the owner gave. */
  abortReason: Parameters<AbortRun>[0] = undefined;
  /** Milliseconds that it may continue after it was aborted. */
  graceMs = 0;
  isKilled = false;
  /** True when it was on a thread that died and it was not known which of its runs was the cause. */
  wasSuspected = false;
  private graceTimer: Timer | undefined = undefined;
  private hasEnded = false;

  /** @param mayReturn - its owner takes it back when it cannot begin */
  constructor(
    readonly task: ExecutableTask,
    readonly slot: TaskSlot,
    private readonly onEnd: (result: ExecutionResult) => void,
    readonly mayReturn: boolean,
  ) {}

  get key(): string {
    return this.task.key;
  }

  get isShort(): boolean {
    return this.task.isShort === true;
  }

  /** True when it needs no turn in the line of its thread. */
  get isConcurrent(): boolean {
    return this.task.isConcurrent === true;
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  /** Sets the timer that ends the run by force unless it ends before. */
  giveGrace(timer: Timer): void {
    this.graceTimer?.cancel();
    this.graceTimer = timer;
  }

  end(result: ExecutionResult): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.graceTimer?.cancel();
    this.onEnd(result);
  }
}

/**
 * The number of the run that a thread has begun last, and of the run that caused its end, in memory that the
 * thread shares with its pool.
 *
 * Runs are numbered from 1 in the order in which they are handed over. The thread claims each before
 * it begins; the pool may claim all that are left, which are then never begun. So a run either begins
 * or comes back, even while the thread is busy and hears nothing.
 */
export class StartedRuns {
  private readonly cell: Int32Array;

  constructor(readonly memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.cell = new Int32Array(memory);
  }

  /** For the thread: whether this run is still its own; if so it has now begun. */
  claim(number: number): boolean {
    const before = wrap(number - 1);
    return Atomics.compareExchange(this.cell, 0, before, wrap(number)) === before;
  }

  /** For the pool: takes back all that has not begun. Returns how many these are. */
  takeBack(last: number): number {
    for (;;) {
      const begun = Atomics.load(this.cell, 0);
      const seen = Atomics.compareExchange(this.cell, 0, begun, wrap(last));
      if (seen === begun) return wrap(last - begun);
    }
  }

  /** For the thread: its end is caused by this run. */
  blame(number: number): void {
    Atomics.store(this.cell, 1, wrap(number));
  }

  /** The run that the thread has named as the cause of its end; 0: none. */
  get culprit(): number {
    return Atomics.load(this.cell, 1);
  }

  /** Runs up to `last` that have not begun. */
  left(last: number): number {
    return wrap(last - Atomics.load(this.cell, 0));
  }
}

/** Numbers are not bounded; the cell holds their low 32 bits. */
function wrap(number: number): number {
  return number | 0;
}

/** The requests to a thread that have not been answered. */
export class PendingAnswers {
  private readonly asked = new Map<number, (result: ExecutionResult) => void>();
  private nextId = 0;

  /** @param post - sends the message, which is made with the id of the answer */
  ask(
    message: (id: number) => ToThread,
    post: (message: ToThread) => void,
  ): Promise<ExecutionResult> {
    return new Promise((resolve) => {
      const id = this.nextId++;
      this.asked.set(id, resolve);
      post(message(id));
    });
  }

  settle(id: number, result: ExecutionResult): void {
    const resolve = this.asked.get(id);
    this.asked.delete(id);
    resolve?.(result);
  }

  /** The thread is gone. */
  failAll(error: ErrorPayload): void {
    for (const resolve of this.asked.values()) resolve({ kind: 'failure', error });
    this.asked.clear();
  }
}
