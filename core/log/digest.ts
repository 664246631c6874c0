import type { Outbox } from '../kernel/outbox.ts';
import type { ToClientMessage } from '../messages/to-client.ts';
import type { ToWorkerMessage } from '../messages/to-worker.ts';
import type { ClusterState } from '../state/cluster.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../state/state-names.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { MARK_MASK } from './format.ts';

/** The state from which a digest continues. */
export type DigestLanes = readonly [low: number, high: number];

/**
 * A rolling hash of numbers and texts, to compare two runs. 64 bits in two lanes; not for secrets.
 * The same sequence of calls gives the same digest on every machine.
 */
export class Digest {
  private low = 0x2545f491;
  private high = 0x4f6cdd1d;

  /** As it is, to continue from there. */
  get lanes(): DigestLanes {
    return [this.low, this.high];
  }
  set lanes([low, high]: DigestLanes) {
    this.low = low | 0;
    this.high = high | 0;
  }

  /** Any number, infinities included. */
  add(value: number): void {
    if ((value | 0) === value) {
      this.mix(value | 0);
      return;
    }
    FLOAT[0] = value;
    this.mix(WORDS[0] as number);
    this.mix(WORDS[1] as number);
  }

  /** A text, with its length, so that neighbouring texts cannot run into each other. */
  addText(text: string): void {
    const { length } = text;
    this.mix(length);
    // As `mix` for each character, with the lanes in registers: most of what a recording hashes is keys.
    let { low, high } = this;
    for (let index = 0; index < length; index++) {
      const word = text.charCodeAt(index);
      low = Math.imul(low ^ word, 0x9e3779b1);
      low ^= low >>> 15;
      high = (Math.imul((high << 7) | (high >>> 25), 5) + (word ^ low)) | 0;
    }
    this.low = low;
    this.high = high;
  }

  /** An unsigned number of 32 bits. */
  get word(): number {
    return finish(this.low ^ this.high) >>> 0;
  }

  /** Sixteen hexadecimal digits. */
  toString(): string {
    return hex(finish(this.high)) + hex(finish(this.low));
  }

  private mix(word: number): void {
    this.low = Math.imul(this.low ^ word, 0x9e3779b1);
    this.low ^= this.low >>> 15;
    this.high = Math.imul((this.high << 7) | (this.high >>> 25), 5) + (word ^ this.low);
    this.high |= 0;
  }
}

const FLOAT = new Float64Array(1);
const WORDS = new Int32Array(FLOAT.buffer);

function finish(lane: number): number {
  const mixed = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0');
}

/** The fields of a message that are hashed besides its name. */
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

/** A hash of what the kernel knows: tasks, workers and clients. O(tasks + replicas + workers). */
export function digestOfState(cluster: ClusterState): string {
  const digest = new Digest();
  for (const task of cluster.tasks.values()) addTask(digest, task);
  for (const worker of cluster.workersByRank) addWorker(digest, worker);
  for (const client of cluster.clients.keys()) digest.addText(client);
  return digest.toString();
}

function addTask(digest: Digest, task: TaskState): void {
  digest.addText(task.key);
  digest.addText(task.state);
  for (const number of [task.nbytes, task.generation, task.rank, task.negatedUserPriority]) {
    digest.add(number);
  }
  for (const number of [task.runId, task.dependencies.length, task.dependentCount]) {
    digest.add(number);
  }
  if (task.processingOn !== undefined) digest.add(task.processingOn.rank);
  for (const worker of task.whoHas) digest.add(worker.rank);
  for (const client of task.whoWants) digest.addText(client.key);
}

function addWorker(digest: Digest, worker: WorkerState): void {
  digest.addText(worker.address);
  digest.addText(worker.status);
  for (const number of [worker.processing.size, worker.hasWhat.size, worker.nbytes]) {
    digest.add(number);
  }
  digest.add(worker.occupancyS);
}
