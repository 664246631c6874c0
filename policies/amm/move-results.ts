import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  replicate,
  type SuggestionGenerator,
} from '../../core/api/index.ts';
import type { RebalanceMove } from './plan-rebalance.ts';

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
