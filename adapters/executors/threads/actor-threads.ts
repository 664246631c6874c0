import type { Worker } from 'node:worker_threads';
import {
  type ActorCall,
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  type Logger,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { epochMs } from '../../clocks/epoch.ts';
import { actorLost, describeFailure } from '../../tasks/index.ts';
import { relayConnection } from '../../transports/tunnel/index.ts';
import type { FromThread, ToThread } from './messages.ts';
import { postedCall, postedTask, receivedResult } from './posted-bytes.ts';
import { PendingAnswers } from './pending-answers.ts';
import { type SpawnSettings, spawnThread } from './spawn.ts';

/** What the threads of actors need. */
export interface ActorThreadsSettings extends SpawnSettings {
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
  async make(task: ExecutableTask, actorAt: string): Promise<ExecutionResult> {
    const { key } = task;
    this.release(key);
    const thread = this.leastUsed();
    this.homes.set(key, thread);
    thread.keys.add(key);
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

/** One thread with actors. */
class ActorThread {
  readonly keys = new Set<string>();
  memoryBytes = 0;
  isClosed = false;
  private readonly worker: Worker;
  private readonly asked = new PendingAnswers();
  private uncaught: unknown;

  constructor(
    private readonly settings: ActorThreadsSettings,
    onGone: (error: YardmasterError) => void,
  ) {
    this.worker = spawnThread('yardmaster-actors', settings);
    this.worker.on('message', (message: FromThread) => this.onMessage(message));
    this.worker.on('error', (error) => (this.uncaught = error));
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
