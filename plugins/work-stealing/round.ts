import type {
  ClusterView,
  DecisionSink,
  StealProposal,
  TaskView,
  WorkerView,
} from '../../core/api/index.ts';
import { LEVEL_COUNT } from './cost-levels.ts';
import { explainTheft } from './explain-theft.ts';
import { type Load, Loads } from './loads.ts';
import type { RoundRules } from './rules.ts';
import type { StealCounters } from './steal-counters.ts';
import { MutableTheft } from './theft.ts';
import { Thieves } from './thieves.ts';
import { isStealable, Victim } from './victim.ts';

/** Work of one slice: about one unit for each examined task. A slice takes a millisecond or two. */
const UNITS_PER_SLICE = 4_000;
/** Tasks that one slice asks for; the kernel and the workers have work with each of them. */
const PROPOSALS_PER_SLICE = 500;
/** Work with a task that is chosen, besides its inputs. */
const UNITS_PER_CHOICE = 3;

/** What a round is about. */
interface RoundParts {
  readonly cluster: ClusterView;
  readonly rules: RoundRules;
  readonly journal: StealCounters;
  /** Prefixes whose tasks are never stolen. */
  readonly spared: ReadonlySet<string>;
  readonly decisions: DecisionSink | undefined;
}

/** What a slice came to. */
interface SliceResult {
  readonly isDone: boolean;
  readonly proposals: readonly StealProposal[];
  /** After the last slice: the addresses of all victims that the round has come to. */
  readonly victims: readonly string[];
  /** What the policy threw, which ended the round. */
  readonly fault?: { readonly cause: unknown };
}

/**
 * One pass over the cluster decides which tasks move from which worker to which. It runs in slices,
 * between which the cluster changes, so everything read in an earlier slice is checked again.
 *
 * Order: by cost level, then by victim, then the tasks that would run last. O(tasks on victims) and
 * O(log thieves) for each task that is considered.
 */
export class Round {
  /** Tasks that were examined. */
  examined = 0;
  private unitsLeft = 0;
  private proposals: StealProposal[] = [];
  private theft: MutableTheft | undefined;
  private readonly steps: Generator<undefined, void>;
  /** Addresses of the victims that the round has come to. */
  private readonly lookedAt = new Set<string>();

  constructor(private readonly parts: RoundParts) {
    this.steps = this.run();
  }

  /** One more slice. */
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
      ...(fault === undefined ? {} : { fault }),
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
