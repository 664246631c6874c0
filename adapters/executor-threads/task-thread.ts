import type { Worker } from 'node:worker_threads';

import {
  type Clock,
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  RunAborted,
  type TaskSlot,
  type Timer,
  YardmasterError,
} from '../../core/api/index.ts';
import { type ClusterReach, describeFailure } from '../tasks/index.ts';
import { relayConnection } from '../tunnel/index.ts';
import {
  forCopying,
  type FromThread,
  type PostedTask,
  threadNowMs,
  type ToThread,
} from './messages.ts';
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
  /** Its task goes on beside those that count, or counts again. */
  readonly onSecede: (thread: TaskThread, hasSeceded: boolean) => void;
  /** The thread is gone; `error` unless it was closed or its task has been told. */
  readonly onGone: (thread: TaskThread, error: YardmasterError | undefined) => void;
}

interface Job {
  readonly task: ExecutableTask;
  readonly resolve: (result: ExecutionResult) => void;
  readonly slot: TaskSlot | undefined;
  /** Takes the listener off the signal. */
  ignoreAbort: () => void;
  /** Milliseconds that it may go on after it was aborted. */
  graceMs: number;
  graceTimer: Timer | undefined;
  isKilled: boolean;
}

/** One thread, which runs one task at a time. When it dies its task fails and it is of no more use. */
export class TaskThread {
  private readonly worker: Worker;
  private job: Job | undefined;
  private wasReady = false;
  private usedBytes = 0;
  /** It was asked to collect garbage and has not answered. */
  private isCollecting = false;
  private isClosed = false;
  private uncaught: unknown = undefined;

  constructor(private readonly settings: ThreadSettings) {
    this.worker = spawnThread('yardmaster-tasks', settings);
    this.worker.on('message', (message: FromThread) => this.onMessage(message));
    this.worker.on('messageerror', (error) => this.end(this.failure('sent nonsense', error)));
    this.worker.on('error', (error) => (this.uncaught = error));
    this.worker.on('exit', (code) => this.onExit(code));
  }

  get isIdle(): boolean {
    return this.job === undefined;
  }

  /** Whether it ever got so far that it could run a task. */
  get hasStarted(): boolean {
    return this.wasReady;
  }

  /** Bytes that its JavaScript occupied when its last task ended, or after its last collection. */
  get memoryBytes(): number {
    return this.usedBytes;
  }

  /** Asks it to collect garbage, unless it was asked already. */
  collectGarbage(): void {
    if (this.isCollecting) return;
    this.isCollecting = true;
    this.worker.postMessage({ op: 'collect' } satisfies ToThread);
  }

  /** @param signal - aborts the task; a task that goes on all the same loses its thread */
  run(task: ExecutableTask, signal: AbortSignal, slot?: TaskSlot): Promise<ExecutionResult> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.abort(job, signal.reason);
      const job: Job = {
        task,
        resolve,
        slot,
        ignoreAbort: () => signal.removeEventListener('abort', onAbort),
        graceMs: this.settings.abortGraceMs,
        graceTimer: undefined,
        isKilled: false,
      };
      this.job = job;
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      const moved: ArrayBuffer[] = [];
      try {
        const posted: ToThread = { op: 'run', ...postedTask(task, moved) };
        this.worker.postMessage(posted, moved);
      } catch (thrown) {
        this.end(describeFailure(thrown));
      }
    });
  }

  /** Ends the thread, whatever it does. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.worker.terminate();
  }

  private onMessage(message: FromThread): void {
    this.usedBytes = message.memoryBytes;
    if (message.op === 'ready') {
      this.wasReady = true;
      return;
    }
    if (message.op === 'collected') {
      this.isCollecting = false;
      return;
    }
    if (message.op === 'connect') {
      relayConnection(message, this.settings.cluster?.transports ?? []);
      return;
    }
    if (message.op === 'answered') return; // It has no actors.
    if (message.op !== 'done') {
      if (this.job !== undefined) this.onPlace(this.job, message.op);
      return;
    }
    const { result } = message;
    if (result.kind !== 'success') {
      this.settle(result);
      return;
    }
    const offsetMs = this.settings.clock.nowMs() - threadNowMs();
    this.settle({
      ...result,
      startMs: result.startMs + offsetMs,
      stopMs: result.stopMs + offsetMs,
    });
  }

  private onPlace(job: Job, wish: 'secede' | 'rejoin'): void {
    if (wish === 'secede') {
      this.settings.onSecede(this, true);
      job.slot?.secede();
      return;
    }
    void (job.slot?.rejoin() ?? Promise.resolve()).then(() => {
      if (this.job !== job) return;
      this.settings.onSecede(this, false);
      this.worker.postMessage({ op: 'rejoined' } satisfies ToThread);
    });
  }

  private abort(job: Job, reason: unknown): void {
    if (this.job !== job) return;
    const { clock, abortGraceMs } = this.settings;
    this.worker.postMessage({ op: 'abort' } satisfies ToThread);
    if (abortGraceMs === Infinity) return;
    if (reason instanceof RunAborted) job.graceMs = reason.killTimeoutMs;
    job.graceTimer = clock.setTimer(job.graceMs, () => {
      if (this.job !== job) return;
      job.isKilled = true;
      void this.worker.terminate();
    });
  }

  private onExit(code: number): void {
    const job = this.job;
    const error = this.isClosed ? undefined : this.death(code);
    if (job !== undefined) {
      this.end(describeFailure(error ?? this.closedError(job)));
    }
    this.settings.onGone(this, job === undefined ? error : undefined);
  }

  private death(code: number): YardmasterError {
    const { job, uncaught } = this;
    const data = { exitCode: code, ...(job === undefined ? {} : { key: job.task.key }) };
    const who = job === undefined ? 'an idle thread' : `the thread of "${job.task.key}"`;
    if (job?.isKilled === true) {
      const message = `${who} was ended: the task was aborted and went on for ${job.graceMs} ms; let it look at currentTask().signal`;
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

  private closedError({ task: { key } }: Job): YardmasterError {
    return new YardmasterError('ERR_CLOSED', `the executor closed before "${key}" was done`, {
      key,
    });
  }

  private failure(what: string, cause: unknown): ErrorPayload {
    const key = this.job?.task.key ?? '';
    const message = `the thread of "${key}" ${what}`;
    return describeFailure(new YardmasterError('ERR_TASK', message, { key }, { cause }));
  }

  private end(error: ErrorPayload): void {
    this.settle({ kind: 'failure', error });
  }

  private settle(result: ExecutionResult): void {
    const { job } = this;
    this.job = undefined;
    if (job === undefined) return;
    job.ignoreAbort();
    job.graceTimer?.cancel();
    job.resolve(result);
  }
}

/** A task as it is posted to a thread. */
export function postedTask(task: ExecutableTask, moved: ArrayBuffer[]): PostedTask {
  const { key, inputs } = task;
  const spec = task.runSpec as { readonly args?: unknown } | undefined;
  const runSpec =
    spec?.args instanceof Uint8Array ? { ...spec, args: forCopying(spec.args, moved) } : spec;
  return {
    key,
    runSpec,
    inputs: Array.from(inputs, ([name, value]) => [name, forCopying(value, moved)] as const),
  };
}
