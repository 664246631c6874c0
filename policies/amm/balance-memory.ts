import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  type MemoryMeasure,
  type OptionsOf,
  replicate,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/heaps.ts';

const optionsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    senderMin: {
      description: 'Fraction of the limit below which a worker gives nothing away.',
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.3,
    },
    recipientMax: {
      description: 'Fraction of the limit up to which a worker receives.',
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.6,
    },
    gap: {
      description: 'A worker gives away when it is above the mean by half of this.',
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.1,
    },
    bytesPerRound: {
      description: 'Bytes on their way at once.',
      type: ['number', 'string'],
      unit: 'bytes',
      minimum: 1,
      default: '256 MiB',
    },
  },
} as const;

export type BalanceMemoryOptions = OptionsOf<typeof optionsSchema>;

/** Results on their way at once. */
const MOVES_MAX = 500;
/** A result with more waiters than this counts as needed soon; they are not looked at. */
const WAITERS_LOOKED_AT = 20;

interface Move {
  readonly from: WorkerView;
  readonly to: WorkerView;
}

/** A worker with a limit, and what it would use if all moves were done. */
interface Share {
  readonly worker: WorkerView;
  bytes: number;
}

/**
 * Evens out how full workers are, while they work: it moves results from workers that use a larger
 * part of their limit than the others to those that use less. It leaves alone what is needed soon,
 * what is on disk, and what has other copies; and it moves little at a time. Workers without a limit
 * take no part.
 */
export class BalanceMemory extends ActiveMemoryManagerPolicy<BalanceMemoryOptions> {
  static override readonly optionsSchema = optionsSchema;

  /** Moves that have begun: the copy was asked for, the original is still there. */
  private readonly moves = new Map<TaskView, Move>();
  private bytesUnderWay = 0;

  /** O(workers × moves + results of the senders). */
  override *run(amm: AmmView): SuggestionGenerator {
    yield* this.finishMoves(amm);
    this.bytesUnderWay = 0;
    for (const { nbytes } of this.moves.keys()) this.bytesUnderWay += Math.max(0, nbytes);
    const shares = this.shares(amm);
    if (shares.length < 2) return;
    const limits = shares.reduce((sum, { worker }) => sum + worker.memoryLimitBytes, 0);
    const mean = shares.reduce((sum, { bytes }) => sum + bytes, 0) / limits;
    const { senderMin, gap } = this.options;
    const least = Math.max(senderMin, mean + gap / 2);
    const senders = shares.filter((share) => fractionOf(share) >= least);
    senders.sort((a, b) => fractionOf(b) - fractionOf(a) || a.worker.rank - b.worker.rank);
    for (const sender of senders) yield* this.relieve(sender, shares, mean, amm);
  }

  /** Drops originals whose copies have arrived. */
  private *finishMoves({ pending }: AmmView): SuggestionGenerator {
    for (const [task, { from, to }] of this.moves) {
      const isOpen = task.state === 'memory' && from.hasWhat.has(task);
      const hasArrived = isOpen && to.hasWhat.has(task);
      if (hasArrived && (yield drop(task, [from], { force: true })) === undefined) continue; // In use at present.
      const isUnderWay = isOpen && pending.get(task)?.replicate.has(to) === true;
      if (hasArrived || !isUnderWay) this.moves.delete(task);
    }
  }

  private shares({ cluster, workersMemory }: AmmView): Share[] {
    const shares = new Map<WorkerView, Share>();
    for (const worker of cluster.running) {
      if (worker.memoryLimitBytes <= 0) continue;
      shares.set(worker, { worker, bytes: workersMemory.get(worker) ?? 0 });
    }
    // The copy is counted already; the original is about to go.
    for (const [task, { from }] of this.moves) {
      const share = shares.get(from);
      if (share !== undefined) share.bytes -= Math.max(0, task.nbytes);
    }
    return [...shares.values()];
  }

  private *relieve(
    sender: Share,
    shares: readonly Share[],
    mean: number,
    { pending }: AmmView,
  ): SuggestionGenerator {
    const { worker } = sender;
    let spilledBytes = worker.metrics.spilledMemoryBytes;
    for (const task of worker.hasWhat) {
      const nbytes = Math.max(0, task.nbytes);
      // Workers spill what they have not used for longest: the oldest, as far as we know.
      spilledBytes -= nbytes;
      if (spilledBytes >= 0 && nbytes > 0) continue;
      if (this.isLimitReached(nbytes)) return;
      if (nbytes === 0 || sender.bytes - nbytes < mean * worker.memoryLimitBytes) continue;
      if (pending.has(task) || !isMovable(task)) continue;
      const recipient = this.recipientFor(task, shares, mean);
      if (recipient === undefined) continue;
      const to = yield replicate(task, [recipient.worker]);
      if (to === undefined) continue;
      this.moves.set(task, { from: worker, to });
      this.bytesUnderWay += nbytes;
      sender.bytes -= nbytes;
      recipient.bytes += nbytes;
    }
  }

  private isLimitReached(nbytes: number): boolean {
    if (this.moves.size >= MOVES_MAX) return true;
    // One result that alone is larger than the limit may go, too.
    return this.moves.size > 0 && this.bytesUnderWay + nbytes > this.options.bytesPerRound;
  }

  /** The one that uses the smallest part of its limit, if it stays below the mean. */
  private recipientFor(task: TaskView, shares: readonly Share[], mean: number): Share | undefined {
    const { recipientMax } = this.options;
    let best: Share | undefined;
    for (const share of shares) {
      const { worker } = share;
      if (worker.hasWhat.has(task)) continue;
      const after = (share.bytes + task.nbytes) / worker.memoryLimitBytes;
      if (after > mean || after > recipientMax) continue;
      if (best === undefined || fractionOf(share) < fractionOf(best)) best = share;
    }
    return best;
  }
}

function fractionOf({ worker, bytes }: Share): number {
  return bytes / worker.memoryLimitBytes;
}

function isMovable(task: TaskView): boolean {
  return task.state === 'memory' && !task.isActor && task.whoHas.size === 1 && !isNeededSoon(task);
}

/** True when a task that reads it runs or could run: all its other inputs are there. */
function isNeededSoon(task: TaskView): boolean {
  if (task.waiterCount === 0) return false;
  if (task.waiterCount > WAITERS_LOOKED_AT) return true;
  return task.waiters.some(({ state }) => state !== 'waiting');
}

interface OpenMove extends RebalanceMove {
  isAsked: boolean;
  /** Rounds in which the original was in use. */
  refusals: number;
}

/**
 * Rounds after which a move is given up because its original is still in use. The copy stays, and a
 * later policy may drop it.
 */
const REFUSALS_MAX = 100;

/**
 * Carries out the moves of one `rebalance`: it makes the copy, and drops the original when the copy
 * has arrived. Each step is checked against the current state, so moves are safe while tasks run.
 */
export class MoveResults extends ActiveMemoryManagerPolicy<Iterable<RebalanceMove>> {
  /** Moves that are under way. */
  readonly open: Set<OpenMove>;
  /** Keys of what has moved. */
  readonly moved: string[] = [];
  /** Addresses of the workers that had it. */
  readonly senders = new Set<string>();
  /** Keys of what stayed: it was gone, its copy did not arrive, or the original was in use. */
  readonly stayed: string[] = [];

  constructor(moves: Iterable<RebalanceMove>) {
    super(moves);
    this.open = new Set([...moves].map((move) => ({ ...move, isAsked: false, refusals: 0 })));
  }

  override *run({ pending }: AmmView): SuggestionGenerator {
    for (const move of this.open) {
      const { task, from, to } = move;
      const hasArrived = to.hasWhat.has(task);
      if (task.state !== 'memory' || !from.hasWhat.has(task)) this.end(move, hasArrived);
      else if (hasArrived) {
        // As many copies as before: the new one is there.
        if ((yield drop(task, [from], { force: true })) !== undefined) this.end(move, true);
        else if (++move.refusals === REFUSALS_MAX) this.end(move, false);
      } else if (pending.get(task)?.replicate.has(to) !== true) {
        if (move.isAsked || (yield replicate(task, [to])) === undefined) this.end(move, false);
        else move.isAsked = true;
      }
    }
  }

  private end(move: OpenMove, hasMoved: boolean): void {
    this.open.delete(move);
    if (hasMoved) this.senders.add(move.from.address);
    (hasMoved ? this.moved : this.stayed).push(move.task.key);
  }
}

/** The rules of a rebalance. Fractions are of the memory limit of each worker. */
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
