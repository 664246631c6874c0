import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  replicate,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';

/** Options of the policy `balance-memory`. Fractions are of the memory limit of each worker. */
export interface BalanceMemoryOptions {
  /** A worker that uses less gives nothing away. */
  readonly senderMin: number;
  /** A worker that would use more receives nothing. */
  readonly recipientMax: number;
  /** A worker gives away when it is above the mean by half of this. */
  readonly gap: number;
  /** Bytes on their way at once. */
  readonly bytesPerRound: number;
}

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
  static override readonly optionsSchema = {
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
  };

  /** StartedRuns: the copy was asked for, the original is still there. */
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

/** Whether a task that reads it runs or could run: all its other inputs are there. */
function isNeededSoon(task: TaskView): boolean {
  if (task.waiterCount === 0) return false;
  if (task.waiterCount > WAITERS_LOOKED_AT) return true;
  return task.waiters.some(({ state }) => state !== 'waiting');
}
