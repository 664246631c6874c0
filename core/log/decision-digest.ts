import type { Outbox } from '../kernel/outbox.ts';
import type { ToClientMessage } from '../messages/to-client.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import type { TaskState } from '../state/task.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../state/task-state-name.ts';
import { Digest, type DigestLanes } from './digest.ts';
import { MARK_MASK } from './format.ts';

/** What of a message is hashed besides its name. */
interface MessageFields {
  readonly key?: string;
  readonly keys?: readonly string[];
  readonly runId?: number;
}

/** A rolling hash of all that a kernel decides: each transition, and each message with its receiver. */
export class DecisionDigest {
  private readonly digest = new Digest();

  /** Called for each transition. */
  addTransition(task: TaskState, start: TaskStateName, finish: TaskStateName): void {
    const { digest } = this;
    digest.add(task.id);
    digest.add(TASK_STATE_NAMES.indexOf(start) * 8 + TASK_STATE_NAMES.indexOf(finish));
  }

  /** Called after each stimulus. */
  addOutbox({ toWorkers, toClients }: Outbox): void {
    const { digest } = this;
    for (const { worker, message } of toWorkers) {
      digest.add(worker.rank);
      this.addMessage(message);
    }
    for (const { client, message } of toClients) {
      digest.addText(client.key);
      this.addMessage(message);
    }
  }

  /** As it is, to continue from there. */
  get lanes(): DigestLanes {
    return this.digest.lanes;
  }
  set lanes(lanes: DigestLanes) {
    this.digest.lanes = lanes;
  }

  /** See `FramePlace.mark`. */
  get mark(): number {
    return this.digest.word & MARK_MASK;
  }

  toString(): string {
    return this.digest.toString();
  }

  private addMessage(message: ToWorkerMessage | ToClientMessage): void {
    const { digest } = this;
    digest.addText(message.op);
    // Faster than asking whether a message has them: there are messages of many shapes.
    const { key, keys, runId } = message as MessageFields;
    if (key !== undefined) digest.addText(key);
    if (keys !== undefined) for (const each of keys) digest.addText(each);
    if (runId !== undefined) digest.add(runId);
  }
}
