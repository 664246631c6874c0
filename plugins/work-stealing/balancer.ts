import type { ClusterView, DecisionSink, StealProposal } from '../../core/api/index.ts';
import { StealCounters } from './steal-counters.ts';
import { Round } from './round.ts';
import type { StealRules } from './rules.ts';
import type { TaskOrder } from './victim.ts';

/** A round that looked at more tasks than this for nothing is not repeated at once. */
const FRUITLESS_TASKS = 1_000;
/** Rounds that are left out at most. */
const REST_MAX = 10;

/** What the balancer is made of. */
export interface BalancerParts {
  readonly cluster: () => ClusterView;
  readonly rules: StealRules;
  /** Prefixes whose tasks are never stolen. */
  readonly spared: ReadonlySet<string>;
  readonly decisions?: DecisionSink;
  /** Of the tasks of a level on a worker; without, the one that would run last goes first. */
  readonly order?: TaskOrder;
  /**
   * Has the kernel ask, and judge anew the victims that were looked at. Not called when there is
   * neither a wish nor a victim.
   */
  readonly enact: (wishes: readonly StealProposal[], victims: readonly string[]) => void;
}

/** What was done since the start. */
export interface StealMetrics {
  readonly rounds: number;
  readonly slices: number;
  /** Tasks that were asked for, by cost level. */
  readonly asked: readonly number[];
  /** Seconds of work that victims would be rid of, by cost level. */
  readonly askedS: readonly number[];
  /** Tasks that were asked for and not answered for. */
  readonly inFlight: number;
}

/** Takes rounds, slice by slice. It has no clock: whoever drives it says when. */
export class Balancer {
  private round: Round | undefined;
  /** What the journal counted when the round began. */
  private countBefore = 0;
  private rounds = 0;
  private slices = 0;
  private readonly journal = new StealCounters();
  /** Rounds to leave out now, and after the next fruitless one. */
  private restLeft = 0;
  private restNext = 1;

  constructor(private readonly parts: BalancerParts) {}

  get metrics(): StealMetrics {
    const { rounds, slices } = this;
    const { asked, askedS } = this.journal;
    const inFlight = this.parts.cluster().stealsInFlight;
    return { rounds, slices, asked: [...asked], askedS: [...askedS], inFlight };
  }

  /** It is time for a round. Returns false when none is due, or one is going on. */
  begin(): boolean {
    if (this.round !== undefined) return false;
    if (this.restLeft > 0) {
      this.restLeft--;
      return false;
    }
    this.start();
    return true;
  }

  /** One slice of the round. Returns whether it goes on. */
  advance(): boolean {
    const { round } = this;
    if (round === undefined) return false;
    this.slices++;
    this.round = undefined; // Should it throw, the next round is another one.
    const { isDone, wishes, victims } = round.advance();
    if (wishes.length > 0 || victims.length > 0) this.parts.enact(wishes, victims);
    if (isDone) this.finish(round);
    else this.round = round;
    return !isDone;
  }

  /** A whole round at once; one that is going on is given up. Returns how many tasks it asked for. */
  runOnce(): number {
    this.start();
    while (this.advance());
    return this.journal.count - this.countBefore;
  }

  /** Something happened after which what was fruitless may bear fruit. */
  awake(): void {
    this.restLeft = 0;
    this.restNext = 1;
  }

  /** Gives up a round that is going on. */
  stop(): void {
    this.round = undefined;
  }

  private start(): void {
    const { rules, spared, decisions, order } = this.parts;
    const { journal } = this;
    const cluster = this.parts.cluster();
    this.rounds++;
    this.countBefore = journal.count;
    rules.begin(cluster);
    this.round = new Round({ cluster, rules, journal, spared, decisions, order });
  }

  /** To look at thousands of tasks ten times a second for nothing would be a waste. */
  private finish({ examined }: Round): void {
    if (this.journal.count > this.countBefore || examined <= FRUITLESS_TASKS) {
      this.awake();
      return;
    }
    this.restLeft = this.restNext;
    this.restNext = Math.min(2 * this.restNext, REST_MAX);
  }
}
