import type { Stimulus } from '../messages/stimulus.ts';
import type { FreeKeys, ToWorkerMessage } from '../messages/to-worker.ts';
import type { Peer } from './sessions/sessions.ts';

/**
 * What one stimulus lets workers free: one message for each worker, where the kernel has one for each key.
 * A client that releases ten thousand results at once costs ten messages then, and as many confirmations.
 */
export class FreedKeys {
  private readonly byWorker = new Map<Peer, string[]>();

  get isEmpty(): boolean {
    return this.byWorker.size === 0;
  }

  add(worker: Peer, { keys }: FreeKeys): void {
    const freed = this.byWorker.get(worker);
    if (freed === undefined) this.byWorker.set(worker, [...keys]);
    else for (const key of keys) freed.push(key);
  }

  /** Sends what this worker may free, since something else follows for it. */
  sendTo(worker: Peer, cause: Stimulus): void {
    const keys = this.byWorker.get(worker);
    if (keys === undefined) return;
    this.byWorker.delete(worker);
    worker.send({ op: 'free-keys', keys, stimulusId: cause.stimulusId });
  }

  /** The stimulus has nothing more to say. */
  sendAll(cause: Stimulus): void {
    for (const worker of this.byWorker.keys()) this.sendTo(worker, cause);
  }
}

/** Whether the message frees keys and says nothing else about them. */
export function isMereFreeing(message: ToWorkerMessage): message is FreeKeys {
  return (
    message.op === 'free-keys' &&
    message.runIds === undefined &&
    message.killTimeoutMs === undefined
  );
}
