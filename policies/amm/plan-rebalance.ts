import type { MemoryMeasure, TaskView, WorkerView } from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/collections/min-heap.ts';

/** How a rebalance is planned. Fractions are of the memory limit of each worker. */
export interface RebalanceRules {
  readonly measure: MemoryMeasure;
  /** A worker that uses less gives nothing away. */
  readonly senderMin: number;
  /** A worker that uses more receives nothing. */
  readonly recipientMax: number;
  /** Workers closer to the mean than half of this are left alone. */
  readonly gap: number;
}

/** One result that shall go from one worker to another. */
export interface RebalanceMove {
  readonly task: TaskView;
  readonly from: WorkerView;
  readonly to: WorkerView;
}

/** A worker that is too full or too empty. Bytes are negative: the smaller, the farther. */
interface Side {
  readonly worker: WorkerView;
  /** To the mean. */
  toMean: number;
  /** To the band around the mean; nothing more is to do at 0. */
  toBand: number;
}

/**
 * Which results to move so that the memory of all these workers comes close to their mean. Decides and
 * moves nothing. Dask's `rebalance`: the worker that is farthest above the mean gives its oldest
 * result that fits to the one that is farthest below, and so on.
 *
 * O(results of the senders × log workers).
 *
 * @param movable - which results may be moved
 */
export function planRebalance(
  workers: readonly WorkerView[],
  rules: RebalanceRules,
  movable: (task: TaskView) => boolean = () => true,
): RebalanceMove[] {
  const { senders, recipients } = sides(workers, rules);
  const results = new Map<Side, Iterator<TaskView>>();
  const moves: RebalanceMove[] = [];
  for (let sender = senders.peek(); sender !== undefined; sender = senders.peek()) {
    if (recipients.size === 0) break;
    let rest = results.get(sender);
    if (rest === undefined) results.set(sender, (rest = sender.worker.hasWhat[Symbol.iterator]()));
    const found = nextMove(sender, rest, recipients, movable);
    if (found === undefined) {
      senders.pop();
      continue;
    }
    const { task, recipient } = found;
    moves.push({ task, from: sender.worker, to: recipient.worker });
    senders.pop();
    bring(sender, task.nbytes, senders);
    bring(recipient, task.nbytes, recipients);
  }
  return moves;
}

function sides(
  workers: readonly WorkerView[],
  { measure, senderMin, recipientMax, gap }: RebalanceRules,
): { readonly senders: MinHeap<Side>; readonly recipients: MinHeap<Side> } {
  const senders = new MinHeap<Side>(byDistance);
  const recipients = new MinHeap<Side>(byDistance);
  const memory = workers.map((worker) => worker.memory[measure]);
  const mean = Math.floor(memory.reduce((sum, bytes) => sum + bytes, 0) / workers.length);
  workers.forEach((worker, index) => {
    const bytes = memory[index] as number;
    const limit = worker.memoryLimitBytes;
    const halfGap = Math.trunc((gap / 2) * limit);
    const most = limit > 0 ? recipientMax * limit : Infinity;
    const toMean = -Math.abs(bytes - mean);
    const side = { worker, toMean, toBand: toMean + halfGap };
    const isFull = worker.hasWhat.size > 0 && bytes >= mean + halfGap && bytes >= senderMin * limit;
    if (isFull) senders.push(side);
    else if (worker.status === 'running' && bytes < mean - halfGap && bytes < most) {
      recipients.push(side);
    }
  });
  return { senders, recipients };
}

/**
 * Finds the oldest result of the sender that fits, and the recipient, which is removed from the
 * heap.
 */
function nextMove(
  sender: Side,
  rest: Iterator<TaskView>,
  recipients: MinHeap<Side>,
  movable: (task: TaskView) => boolean,
): { readonly task: TaskView; readonly recipient: Side } | undefined {
  for (let step = rest.next(); step.done !== true; step = rest.next()) {
    const task = step.value;
    // Beyond the mean the sender would become a recipient.
    if (task.nbytes < 0 || task.nbytes + sender.toMean > 0) continue;
    if (task.isActor || !movable(task)) continue;
    const recipient = takeRecipient(task, recipients);
    if (recipient !== undefined) return { task, recipient };
  }
  return undefined;
}

function takeRecipient(task: TaskView, recipients: MinHeap<Side>): Side | undefined {
  const holders: Side[] = [];
  let found: Side | undefined;
  while (found === undefined) {
    const next = recipients.peek();
    if (next === undefined || task.nbytes + next.toMean > 0) break;
    recipients.pop();
    if (next.worker.hasWhat.has(task)) holders.push(next);
    else found = next;
  }
  for (const holder of holders) recipients.push(holder);
  return found;
}

/**
 * Moves the side closer to the mean by this many bytes, and puts it back into the heap unless it is
 * close enough.
 */
function bring(side: Side, nbytes: number, sides: MinHeap<Side>): void {
  side.toMean += nbytes;
  side.toBand += nbytes;
  if (side.toBand < 0) sides.push(side);
}

function byDistance(a: Side, b: Side): number {
  return a.toMean - b.toMean || a.toBand - b.toBand || a.worker.rank - b.worker.rank;
}
