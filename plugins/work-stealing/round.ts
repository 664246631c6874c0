import {
  type ClusterView,
  type DecisionCandidate,
  type DecisionSink,
  messageOf,
  type PluginDecision,
  type PolicyInCharge,
  type Stealing,
  type StealProposal,
  type TaskView,
  type Theft,
  type WorkerLoad,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { SHOWN } from '../../core/util/values.ts';
import { dask, DaskStealing } from '../../policies/stealing/dask.ts';
import { LEVEL_COUNT, levelOf, type Load, Loads } from './levels.ts';
import { isStealable, Thieves, Victim } from './thieves.ts';

/** Work of one slice: about one unit for each examined task. A slice takes a millisecond or two. */
const UNITS_PER_SLICE = 4_000;
/** Tasks that one slice asks for; the kernel and the workers have work with each of them. */
const PROPOSALS_PER_SLICE = 500;
/** Work with a task that is chosen, besides its inputs. */
const UNITS_PER_CHOICE = 3;

interface RoundParts {
  readonly cluster: ClusterView;
  readonly rules: RoundRules;
  readonly journal: StealCounters;
  /** Prefixes whose tasks are never stolen. */
  readonly spared: ReadonlySet<string>;
  readonly decisions: DecisionSink | undefined;
}

interface SliceResult {
  readonly isDone: boolean;
  readonly proposals: readonly StealProposal[];
  /** After the last slice: the addresses of all victims that the round has come to. */
  readonly victims: readonly string[];
  /** The error of the policy that ended the round. */
  readonly fault?: { readonly cause: unknown };
}

/**
 * One pass over the cluster decides which tasks move from which worker to which. It runs in slices,
 * between which the cluster changes, so everything read in an earlier slice is checked again.
 *
 * Order: by cost level, then by victim, then the tasks that would run last. O(tasks on victims) and
 * O(log thieves) for each task that is considered.
 */
class Round {
  readonly rules: RoundRules;
  /** Tasks that were examined. */
  examined = 0;
  private unitsLeft = 0;
  private proposals: StealProposal[] = [];
  private theft: MutableTheft | undefined;
  private readonly steps: Generator<undefined, void>;
  /** Addresses of the victims that the round has come to. */
  private readonly lookedAt = new Set<string>();

  constructor(private readonly parts: RoundParts) {
    this.rules = parts.rules;
    this.steps = this.run();
  }

  advance(): SliceResult {
    this.unitsLeft = UNITS_PER_SLICE;
    this.proposals = [];
    let isDone = true;
    let fault: SliceResult['fault'];
    try {
      isDone = this.steps.next().done === true;
    } catch (cause) {
      fault = { cause };
    }
    const victims = isDone ? [...this.lookedAt] : [];
    return {
      isDone,
      proposals: this.proposals,
      victims,
      fault,
    };
  }

  private get isSliceFull(): boolean {
    return this.unitsLeft <= 0 || this.proposals.length >= PROPOSALS_PER_SLICE;
  }

  private *run(): Generator<undefined, void> {
    const { cluster } = this.parts;
    const { idle, workers } = cluster;
    if (idle.size === 0 || idle.size === workers.size) return;
    const loads = new Loads();
    const thieves = this.thieves(loads);
    if (thieves.isEmpty()) return;
    const victims = this.victims(loads);
    for (let level = 0; level < LEVEL_COUNT; level++) {
      for (const victim of victims) {
        if (thieves.isEmpty()) return;
        this.unitsLeft--;
        this.lookedAt.add(victim.load.worker.address);
        if (!this.parts.rules.mayPay(victim.load, thieves.leastPerThreadS, 0)) continue;
        if (!victim.isSearched) yield* this.search(victim);
        yield* this.rob(victim, level, thieves);
      }
    }
  }

  private thieves(loads: Loads): Thieves {
    const { cluster, rules } = this.parts;
    const members: Load[] = [];
    for (const worker of cluster.idle) {
      const load = loads.of(worker);
      if (rules.mayTake(load)) members.push(load);
    }
    this.unitsLeft -= cluster.idle.size;
    return new Thieves(cluster, loads, members);
  }

  private victims(loads: Loads): Victim[] {
    const { cluster, rules } = this.parts;
    this.unitsLeft -= cluster.workers.size;
    const chosen = new Set([...stuck(cluster, loads), ...rules.victims(cluster, loads)]);
    const victims: Victim[] = [];
    for (const load of chosen) if (!load.isThief) victims.push(new Victim(load, rules));
    return victims;
  }

  private *search(victim: Victim): Generator<undefined, void> {
    const { cluster, spared } = this.parts;
    victim.isSearched = true;
    // From the last to the first: of the newest assignments most run last.
    const tasks = [...victim.load.worker.processing];
    for (let index = tasks.length - 1; index >= 0; index--) {
      const task = tasks[index] as TaskView;
      victim.consider(task, cluster.costs, spared);
      this.examined++;
      this.unitsLeft -= 1 + task.dependencies.length;
      if (this.isSliceFull) yield;
    }
  }

  private *rob(victim: Victim, index: number, thieves: Thieves): Generator<undefined, void> {
    const { cluster, rules } = this.parts;
    const level = victim.level(index);
    if (level === undefined) return;
    const { tasks, leastComputeS } = level;
    for (let task = tasks.pop(); task !== undefined; task = tasks.pop()) {
      if (this.isSliceFull) yield;
      if (thieves.isEmpty() || !isStillThere(victim.load.worker, cluster)) return;
      if (!rules.mayPay(victim.load, thieves.leastPerThreadS, leastComputeS)) return;
      if (!isStealable(task, victim)) continue;
      this.consider(task, victim.load, index, thieves);
      this.unitsLeft -= UNITS_PER_CHOICE + thieves.units;
      thieves.units = 0;
    }
  }

  private consider(task: TaskView, victim: Load, level: number, thieves: Thieves): void {
    const { cluster, rules, journal, decisions } = this.parts;
    const theft = this.theftOf(task, victim);
    if (!thieves.choose(theft)) return;
    const { thief, computeS } = theft;
    const { worker } = thief;
    if (worker.status !== 'running' || !isStillThere(worker, cluster)) {
      thieves.dismiss(thief);
      return;
    }
    if (!rules.pays(theft)) return;
    const victimS = computeS + theft.victimTransferS;
    const thiefS = computeS + theft.thiefTransferS;
    const { address } = victim.worker;
    this.proposals.push({ key: task.key, victim: address, thief: worker.address, victimS, thiefS });
    journal.add(level, victimS);
    if (decisions?.isRecording === true) decisions.record(explainTheft(theft, level, rules.name));
    victim.give(victimS);
    thief.take(thiefS);
    if (!rules.mayTake(thief)) thieves.dismiss(thief);
  }

  private theftOf(task: TaskView, victim: Load): MutableTheft {
    const theft = (this.theft ??= new MutableTheft(task, victim, victim));
    theft.task = task;
    theft.victim = victim;
    theft.computeS = task.prefix.durationEstimateS;
    theft.victimTransferS = 0;
    theft.thiefTransferS = 0;
    return theft;
  }
}

/** Workers that finish what they run and begin nothing: what waits there waits for nothing. */
function stuck({ running, workers }: ClusterView, loads: Loads): Load[] {
  const victims: Load[] = [];
  if (running.size === workers.size) return victims;
  for (const worker of workers.values()) {
    if (worker.status !== 'running' && worker.processing.size > 0) victims.push(loads.of(worker));
  }
  return victims;
}

function isStillThere(worker: WorkerView, { workers }: ClusterView): boolean {
  return workers.get(worker.address) === worker;
}

/** A round that examined more tasks than this without a proposal is not repeated at once. */
const FRUITLESS_TASKS = 1_000;
/** Rounds that are left out at most. */
const REST_MAX = 10;

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

/** Figures since the start. */
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
  /** The count of the journal when the round began. */
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
    if (isDone) for (const question of round.rules.answers) this.inCharge?.answered(question);
    if (fault !== undefined) this.failed(fault.cause, round.rules.question);
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
      this.failed(cause, 'begin');
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
  private failed(cause: unknown, question: Question): void {
    const { inCharge, standard } = this;
    if (inCharge === undefined) throw cause; // The built-in rules have failed: a bug of this plugin.
    const isUnusable = YardmasterError.is(cause, 'ERR_POLICY');
    const what = isUnusable ? messageOf(cause) : `threw: ${messageOf(cause)}`;
    inCharge.failed(what, isUnusable ? undefined : cause, question);
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

/** Which of two tasks of one level is stolen first, as for a sort. Never 0 for two tasks. */
export type TaskOrder = (a: TaskView, b: TaskView) => number;

/** A question to a policy in a round. */
type Question = keyof Stealing;

/** The rules of a round: the policy in charge, checked, and Dask's rules where it has none. */
export class RoundRules {
  readonly order: TaskOrder;
  private readonly taking: Pick<DaskStealing, 'mayTake'>;
  private readonly choosing: Pick<Required<Stealing>, 'victims'>;
  private readonly paying: Pick<DaskStealing, 'pays'>;
  /** Undefined: every task may pay. */
  private readonly bound: Pick<DaskStealing, 'mayPay'> | undefined;
  /** The last question to the policy. */
  question: Question = 'begin';
  /** The questions to which the policy has given a usable answer. */
  private readonly isAnswered: Record<Question, boolean> = {
    ...{ begin: false, mayTake: false, victims: false, levelOf: false },
    ...{ order: false, mayPay: false, pays: false },
  };

  /** Begins a round of the policy. @throws what the policy throws */
  constructor(
    /** For decisions that are recorded. */
    readonly name: string,
    private readonly policy: Stealing,
    standard: DaskStealing,
    cluster: ClusterView,
  ) {
    this.taking = has(policy, 'mayTake') ? policy : standard;
    this.choosing = has(policy, 'victims') ? policy : standard;
    this.paying = has(policy, 'pays') ? policy : standard;
    if (has(policy, 'mayPay')) this.bound = policy;
    else this.bound = this.paying === standard ? standard : undefined;
    this.order = has(policy, 'order') ? this.checkedOrder(policy) : lastFirst;
    standard.begin(cluster);
    if (policy !== standard) policy.begin?.(cluster);
    this.isAnswered.begin = true;
  }

  /** The questions to which the policy has given a usable answer. */
  get answers(): Question[] {
    return (Object.keys(this.isAnswered) as Question[]).filter((name) => this.isAnswered[name]);
  }

  mayTake(thief: Load): boolean {
    this.question = 'mayTake';
    return this.yesOrNo('mayTake', this.taking.mayTake(thief));
  }

  victims(cluster: ClusterView, loads: Loads): Load[] {
    this.question = 'victims';
    const chosen: unknown = this.choosing.victims(cluster, (worker) => loads.of(worker));
    if (typeof chosen !== 'object' || chosen === null || !(Symbol.iterator in chosen)) {
      throw unusable(`answered victims with ${String(chosen)}; a list of workers is wanted`);
    }
    const victims = Array.from(chosen as Iterable<WorkerView>, (worker) => {
      const address = (worker as Partial<WorkerView> | undefined)?.address;
      if (address !== undefined && cluster.workers.get(address) === worker) return loads.of(worker);
      throw unusable(`chose a victim that is not a worker of the cluster: ${String(address)}`);
    });
    this.isAnswered.victims = true;
    return victims;
  }

  levelOf(task: TaskView, costs: ClusterView['costs']): number | undefined {
    const level = levelOf(task, costs);
    const { policy } = this;
    if (policy.levelOf === undefined) return level;
    this.question = 'levelOf';
    const own = policy.levelOf(task, level);
    if (own === undefined || (Number.isInteger(own) && own >= 0 && own < LEVEL_COUNT)) {
      this.isAnswered.levelOf = true;
      return own;
    }
    throw unusable(
      `gave ${task.key} the cost level ${String(own)}; allowed are whole numbers from 0 to ${LEVEL_COUNT - 1}, and undefined`,
    );
  }

  /** True when a task of at least `computeS` can be worth stealing from the victim. */
  mayPay(victim: Load, leastS: number, computeS: number): boolean {
    if (victim.isStuck || this.bound === undefined) return true;
    this.question = 'mayPay';
    return this.yesOrNo('mayPay', this.bound.mayPay(victim, leastS, computeS));
  }

  pays(theft: Theft & { readonly victim: Load }): boolean {
    if (theft.victim.isStuck) return true;
    this.question = 'pays';
    return this.yesOrNo('pays', this.paying.pays(theft));
  }

  private checkedOrder(policy: Pick<Required<Stealing>, 'order'>): TaskOrder {
    return (a, b) => {
      this.question = 'order';
      const answer = policy.order(a, b);
      if (typeof answer !== 'number' || Number.isNaN(answer)) {
        throw unusable(`answered order with ${String(answer)}; a number is wanted`);
      }
      this.isAnswered.order = true;
      return answer || lastFirst(a, b);
    };
  }

  private yesOrNo(question: Question, answer: unknown): boolean {
    if (typeof answer !== 'boolean') {
      throw unusable(`answered ${question} with ${String(answer)}; true or false is wanted`);
    }
    this.isAnswered[question] = true;
    return answer;
  }
}

/** By descending priority: what would run soon is not worth moving, and may have begun by then. */
function lastFirst(a: TaskView, b: TaskView): number {
  const user = b.negatedUserPriority - a.negatedUserPriority;
  if (user !== 0) return user;
  const generation = b.generation - a.generation;
  if (generation !== 0) return generation;
  const rank = b.rank - a.rank;
  if (rank !== 0) return rank;
  const arrival = b.arrival - a.arrival;
  if (arrival !== 0) return arrival;
  return a.key < b.key ? 1 : -1;
}

function has<Name extends keyof Stealing>(
  policy: Stealing,
  name: Name,
): policy is Stealing & Pick<Required<Stealing>, Name> {
  return policy[name] !== undefined;
}

/** @param what - in words that follow the name of the policy */
function unusable(what: string): YardmasterError {
  return new YardmasterError('ERR_POLICY', what);
}

/**
 * Puts a theft into words, before the loads change: where the task would wait, and for how long.
 * @param policy - the name of the stealing policy
 */
function explainTheft(theft: Theft, level: number, policy: string): PluginDecision {
  const { task, victim, thief, computeS, victimTransferS, thiefTransferS } = theft;
  const there = victim.perThreadS + victimTransferS;
  const here = thief.perThreadS + thiefTransferS;
  return {
    kind: 'steal',
    policy,
    key: task.key,
    outcome: thief.worker.address,
    rule:
      `asked for from ${victim.worker.address}, cost level ${level}: ${text(computeS)} of computation; ` +
      `${text(there)} of work per thread and transfers there, ${text(here)} here`,
    candidates: [candidate(thief), candidate(victim)],
    candidateCount: 2,
  };
}

function candidate({ worker, workS, taskCount }: WorkerLoad): DecisionCandidate {
  return { worker: worker.address, occupancyS: workS, processingCount: taskCount };
}

function text(seconds: number): string {
  return `${Number(seconds.toPrecision(3))} s`;
}

/** Counts the requests since the start. */
class StealCounters {
  /** Tasks, all in all. */
  count = 0;
  /** Tasks by cost level. */
  readonly asked = new Array<number>(LEVEL_COUNT).fill(0);
  /** Seconds of work that victims would be rid of, by cost level. */
  readonly askedS = new Array<number>(LEVEL_COUNT).fill(0);

  add(level: number, seconds: number): void {
    this.count++;
    (this.asked[level] as number)++;
    (this.askedS[level] as number) += seconds;
  }
}

/** One object is filled in for one task after the other: a round considers tens of thousands. */
export class MutableTheft implements Theft {
  [SHOWN]: object | 'theft' = 'theft';
  computeS: number;
  thiefTransferS = 0;
  victimTransferS = 0;

  constructor(
    public task: TaskView,
    public victim: Load,
    public thief: Load,
  ) {
    this.computeS = task.prefix.durationEstimateS;
  }
}
