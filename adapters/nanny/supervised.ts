import {
  type Clock,
  type ErrorCode,
  every,
  type RemotePlugin,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { exitProcess } from '../executors/threads/spawn.ts';
import { inBackground } from '../../core/shared/background.ts';
import {
  ALIVE_MS,
  type FromWorkerProcess,
  type ExitReason,
  type RestartEvent,
  type ToWorkerProcess,
} from './messages.ts';

/** What a nanny may want of the worker. */
export interface SupervisedWorker {
  readonly address: string;
  close(): Promise<void>;
  /** Gives away what only it holds. Never rejects. */
  retire(timeoutMs: number): Promise<void>;
  logEvent(topics: readonly string[], message: unknown): void;
}

/** Time for a worker to close when its nanny is gone; then its process ends. */
const CLOSE_MS = 8000;

interface Asked {
  resolve(answer: WireMessage): void;
  reject(error: Error): void;
}

type PluginAnswer = Extract<ToWorkerProcess, { readonly op: 'nanny-plugin-answer' }>;

/** The end of a worker process that is turned to its nanny. */
export class NannyLink {
  private readonly timer: Timer;
  private worker: SupervisedWorker | undefined;
  private request: 'close' | 'restart' | undefined;
  private readonly asked = new Map<number, Asked>();
  private askedCount = 0;

  /** @throws Error when no nanny started this process */
  constructor(clock: Clock) {
    if (process.send === undefined) throw new Error('--supervised is for processes of a nanny');
    this.timer = every(clock, ALIVE_MS, () => this.tell({ op: 'alive' }));
    // Ctrl-C reaches both; the nanny says what is to be done.
    process.on('SIGINT', () => undefined);
    process.on('message', (message) => {
      const done = this.onMessage(message as ToWorkerProcess);
      inBackground(done, 'what the nanny asked for could not be done');
    });
    // A worker that no nanny looks after must not stay, however its end went.
    process.on('disconnect', () => inBackground(this.onAbandoned(), () => exitProcess(1)));
  }

  /** What the nanny has asked for; undefined: nothing yet. */
  get requested(): 'close' | 'restart' | undefined {
    return this.request;
  }

  /** The worker is there. */
  registered(worker: SupervisedWorker): void {
    this.worker = worker;
    this.tell({ op: 'registered', address: worker.address });
  }

  /** Says why the process is about to end. Resolves when that has left. */
  ends(words: ExitReason): Promise<void> {
    this.timer.cancel();
    return new Promise((resolve) => {
      this.tell({ op: 'ends', words }, resolve);
    });
  }

  /** Sends the nanny the plugins that clients want it to have. */
  agree(wanted: readonly RemotePlugin[]): Promise<void> {
    this.tell({ op: 'nanny-plugins', wanted });
    return Promise.resolve();
  }

  /**
   * Has the nanny add or remove a plugin.
   * @throws YardmasterError as the nanny says, `ERR_CLOSED` when it is gone
   */
  answer(request: WireMessage): Promise<WireMessage> {
    const id = ++this.askedCount;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.tell({ op: 'nanny-plugin', id, request });
      if (!process.connected) this.dropAsked();
    });
  }

  private dropAsked(): void {
    for (const asked of this.asked.values()) {
      asked.reject(new YardmasterError('ERR_CLOSED', 'the nanny of this worker is gone'));
    }
    this.asked.clear();
  }

  private settle({ id, answer, error }: PluginAnswer): void {
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (error === undefined) asked?.resolve(answer ?? {});
    else asked?.reject(new YardmasterError(error.code as ErrorCode, error.message));
  }

  private async onMessage(message: ToWorkerProcess): Promise<void> {
    if (message.op === 'nanny-plugin-answer') {
      this.settle(message);
      return;
    }
    const { worker } = this;
    if (worker === undefined) return;
    if (message.op === 'close') {
      this.request = 'close';
      if (message.retireMs > 0) await worker.retire(message.retireMs);
      await worker.close();
    } else if (message.op === 'restart') {
      this.request = 'restart';
      await worker.close();
    } else {
      const event: RestartEvent = message.event;
      worker.logEvent(['all', worker.address], event);
    }
  }

  /** Ends the worker when its nanny is gone, so that no unsupervised process remains. */
  private async onAbandoned(): Promise<void> {
    this.timer.cancel();
    this.dropAsked();
    if (this.worker === undefined) {
      exitProcess(1);
      return;
    }
    setTimeout(() => exitProcess(1), CLOSE_MS).unref();
    await this.worker.close();
  }

  private tell(message: FromWorkerProcess, then: () => void = () => undefined): void {
    if (process.connected) process.send?.(message, undefined, undefined, then);
    else then();
  }
}
