import { type Clock, every, type Timer } from '../../core/api/index.ts';
import {
  ALIVE_MS,
  type FromWorkerProcess,
  type LastWords,
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

/** The end of a worker process that is turned to its nanny. */
export class NannyLink {
  private readonly timer: Timer;
  private worker: SupervisedWorker | undefined;

  /** @throws Error when no nanny started this process */
  constructor(clock: Clock) {
    if (process.send === undefined) throw new Error('--supervised is for processes of a nanny');
    this.timer = every(clock, ALIVE_MS, () => this.tell({ op: 'alive' }));
    // Ctrl-C reaches both; the nanny says what is to be done.
    process.on('SIGINT', () => undefined);
    process.on('message', (message) => void this.onMessage(message as ToWorkerProcess));
    process.on('disconnect', () => void this.onAbandoned());
  }

  /** The worker is there. */
  registered(worker: SupervisedWorker): void {
    this.worker = worker;
    this.tell({ op: 'registered', address: worker.address });
  }

  /** Says why the process is about to end. Resolves when that has left. */
  ends(words: LastWords): Promise<void> {
    this.timer.cancel();
    return new Promise((resolve) => {
      this.tell({ op: 'ends', words }, resolve);
    });
  }

  private async onMessage(message: ToWorkerProcess): Promise<void> {
    const { worker } = this;
    if (worker === undefined) return;
    if (message.op === 'close') {
      if (message.retireMs > 0) await worker.retire(message.retireMs);
      await worker.close();
    } else {
      const event: RestartEvent = message.event;
      worker.logEvent(['all', worker.address], event);
    }
  }

  /** A worker that nobody looks after would be left over. */
  private async onAbandoned(): Promise<void> {
    this.timer.cancel();
    if (this.worker === undefined) process.exit(1);
    await this.worker.close();
  }

  private tell(message: FromWorkerProcess, then: () => void = () => undefined): void {
    if (process.connected) process.send?.(message, undefined, undefined, then);
    else then();
  }
}
