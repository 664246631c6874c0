import type { ToClientMessage } from '../messages/to-client.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import type { ClientState, WorkerState } from '../state/task.ts';
import { empty } from '../util/values.ts';

/** One message and who gets it. */
interface ToWorkerEnvelope {
  readonly worker: WorkerState;
  readonly message: ToWorkerMessage;
}
interface ToClientEnvelope {
  readonly client: ClientState;
  readonly message: ToClientMessage;
}

/** Something for people, published under a topic. */
export interface LoggedEvent {
  readonly topic: string;
  readonly message: unknown;
}

/** The output of the kernel for a stimulus. Messages to one receiver are in the order to send. */
export interface Outbox {
  readonly toWorkers: readonly ToWorkerEnvelope[];
  readonly toClients: readonly ToClientEnvelope[];
  readonly events: readonly LoggedEvent[];
}

/** The writing side. One per kernel, emptied before each stimulus. */
export class OutboxWriter implements Outbox {
  readonly toWorkers: ToWorkerEnvelope[] = [];
  readonly toClients: ToClientEnvelope[] = [];
  readonly events: LoggedEvent[] = [];

  toWorker(worker: WorkerState, message: ToWorkerMessage): void {
    this.toWorkers.push({ worker, message });
  }

  toClient(client: ClientState, message: ToClientMessage): void {
    if (client.cancelled !== undefined && message.op === 'cancelled-keys') {
      for (const key of message.keys) client.cancelled.add(key);
    }
    if (!client.isMute) this.toClients.push({ client, message });
  }

  event(topic: string, message: unknown): void {
    this.events.push({ topic, message });
  }

  /**
   * Removes the key from the messages for this worker that were added since the outbox had `mark`
   * messages for workers.
   */
  retractFreeKeys(key: string, worker: WorkerState, mark: number): void {
    for (let index = this.toWorkers.length - 1; index >= mark; index--) {
      const { worker: receiver, message } = this.toWorkers[index] as ToWorkerEnvelope;
      if (receiver !== worker || message.op !== 'free-keys' || message.keys[0] !== key) continue;
      this.toWorkers.splice(index, 1);
    }
  }

  clear(): void {
    empty(this.toWorkers);
    empty(this.toClients);
    empty(this.events);
  }
}
