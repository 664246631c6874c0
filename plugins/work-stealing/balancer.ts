import {
  type ClusterView,
  type DecisionSink,
  type PolicyInCharge,
  type Stealing,
  type StealProposal,
  toErrorPayload,
  YardmasterError,
} from '../../core/api/index.ts';
import { dask, DaskStealing } from '../../policies/stealing/dask.ts';
import { Round } from './round.ts';
import { RoundRules } from './rules.ts';
import { StealCounters } from './steal-counters.ts';

/** A round that examined more tasks than this without a proposal is not repeated at once. */
const FRUITLESS_TASKS = 1_000;
/** Rounds that are left out at most. */
const REST_MAX = 10;

/** What the balancer is made of. */
interface BalancerParts {
  readonly cluster: () => ClusterView;
  /** Read when a round begins; it decides the whole round. */
  readonly policy: () => PolicyInCharge<'stealing'>;
  /** Prefixes whose tasks are never stolen. */
  readonly spared: ReadonlySet<string>;
  readonly decisions?: DecisionSink;
  /**
   * Sends the proposals to the kernel, which also re-evaluates the victims that were examined. Not
   * called when both are empty.
   */
  readonly enact: (proposals: readonly StealProposal[], victims: readonly string[]) => void;
}

/** What was done since the start. */
interface StealMetrics {
  readonly rounds: number;
  readonly slices: number;
  /** Tasks that were asked for, by cost level. */
  readonly asked: readonly number[];
  /** Seconds of work that victims would be rid of, by cost level. */
  readonly askedS: readonly number[];
  /** Tasks that were asked for and not answered for. */
  readonly inFlight: number;
}

/** Takes rounds, slice by slice. It has no clock: its owner calls it at an interval. */
export class Balancer {
  private round: Round | undefined;
  /** Of the latest round. */
  private lastPolicy: Stealing | undefined;
  /** Decides the round; undefined while {@link standard} does so in its place. */
  private inCharge: PolicyInCharge<'stealing'> | undefined;
  /** Decides in place of a policy that failed, and what a policy leaves out. */
  private readonly standard = new DaskStealing();
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

  /** It is time for a round. Returns false when none is due, or one has not ended yet. */
  begin(): boolean {
    if (this.round !== undefined) return false;
    const inCharge = this.parts.policy();
    if (inCharge.policy !== this.lastPolicy) this.awake();
    if (this.restLeft > 0) {
      this.restLeft--;
      return false;
    }
    this.start(inCharge);
    return true;
  }

  /** One slice of the round. Returns whether more are to come. */
  advance(): boolean {
    const { round } = this;
    if (round === undefined) return false;
    this.slices++;
    this.round = undefined; // Should enacting throw, the next round is another one.
    const { isDone, proposals: proposals, victims, fault } = round.advance();
    if (proposals.length > 0 || victims.length > 0) this.parts.enact(proposals, victims);
    if (fault !== undefined) this.failed(fault.cause);
    else if (isDone) this.finish(round);
    else this.round = round;
    return this.round !== undefined;
  }

  /** A whole round at once; one that has not ended is given up. Returns how many tasks it asked for. */
  runOnce(): number {
    this.start(this.parts.policy());
    while (this.advance());
    return this.journal.count - this.countBefore;
  }

  /** Something happened after which what was fruitless may bear fruit. */
  awake(): void {
    this.restLeft = 0;
    this.restNext = 1;
  }

  /** Gives up a round that has not ended. */
  stop(): void {
    this.round = undefined;
  }

  private start(inCharge: PolicyInCharge<'stealing'>): void {
    this.lastPolicy = inCharge.policy;
    this.inCharge = inCharge;
    this.rounds++;
    this.countBefore = this.journal.count;
    try {
      this.round = this.roundOf(inCharge.name, inCharge.policy);
    } catch (cause) {
      this.failed(cause);
    }
  }

  private roundOf(name: string, policy: Stealing): Round {
    const { spared, decisions } = this.parts;
    const { journal, standard } = this;
    const cluster = this.parts.cluster();
    const rules = new RoundRules(name, policy, standard, cluster);
    return new Round({ cluster, rules, journal, spared, decisions });
  }

  /** The policy has failed, which ends its round; the built-in rules decide another one in its place. */
  private failed(cause: unknown): void {
    const { inCharge, standard } = this;
    if (inCharge === undefined) throw cause; // The built-in rules have failed: a bug of this plugin.
    const isUnusable = YardmasterError.is(cause, 'ERR_POLICY');
    const { message } = toErrorPayload(cause);
    inCharge.failed(isUnusable ? message : `threw: ${message}`, isUnusable ? undefined : cause);
    this.inCharge = undefined;
    this.round = this.roundOf(dask.name, standard);
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
