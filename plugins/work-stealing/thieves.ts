import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';
import { MinHeap } from '../../core/util/heaps.ts';
import { LEVEL_COUNT, type Load, type Loads, nbytesOf } from './levels.ts';
import type { MutableTheft, RoundRules, TaskOrder } from './round.ts';

/** Results with more copies than this: only the best of their holders is considered. */
const COPIES_LOOKED_AT = 16;
/** Workers and hosts that are gone through one by one when a task names them. */
const NAMES_LOOKED_AT = 32;

/** True when a thief may have the task in question. */
type Test = (load: Load) => boolean;

/**
 * The workers that steal in a round. A task goes to the one that could begin it first; ties go to the
 * one with the fewest stored bytes, then to the lowest rank.
 *
 * Not every thief is compared for every task: without inputs the least loaded one is the best, with
 * inputs only one that holds some of them can be better.
 */
export class Thieves {
  /** Work done, in units, so that the caller can limit a slice. */
  units = 0;
  private readonly all: ThiefPool;
  private count: number;
  private readonly byHost = new Map<string, ThiefPool>();
  private readonly byResource = new Map<string, ThiefPool>();
  private readonly byInput = new Map<TaskView, ThiefPool>();
  private readonly candidates: Load[] = [];

  constructor(
    private readonly cluster: ClusterView,
    private readonly loads: Loads,
    private readonly members: readonly Load[],
  ) {
    for (const load of members) load.isThief = true;
    this.count = members.length;
    this.all = new ThiefPool(members);
    this.units += members.length;
  }

  isEmpty(): boolean {
    return this.count === 0;
  }

  /** Seconds until the first of them would run dry. */
  get leastPerThreadS(): number {
    return this.all.top()?.perThreadS ?? Infinity;
  }

  /** It has enough for this round. */
  dismiss(load: Load): void {
    if (!load.isThief) return;
    load.isThief = false;
    this.count--;
  }

  /**
   * Finds the thief for the task of a theft, and fills it in with the cost of moving the task.
   * Returns false when no thief may run it. O(inputs and their copies + log thieves).
   */
  choose(theft: MutableTheft): boolean {
    const { task } = theft;
    let best: Load | undefined;
    if (task.isActor || !this.cluster.suitsAnywhere(task)) {
      best = this.chooseSuited(theft);
    } else if (task.dependencies.length === 0) {
      best = this.all.top();
    } else {
      this.add(this.all.top());
      best = this.compare(theft, undefined);
    }
    if (best === undefined) return false;
    theft.thief = best;
    return true;
  }

  private chooseSuited(theft: MutableTheft): Load | undefined {
    const { cluster } = this;
    const { task, victim } = theft;
    const suitsWell: Test = ({ worker }) => cluster.suits(task, worker, victim.worker) === 'well';
    this.addNamed(task, suitsWell);
    const best = this.compare(theft, suitsWell);
    if (best !== undefined || task.restrictions?.loose !== true) return best;
    // None of the preferred workers steals, so any worker with the resources will do.
    const suitsAtAll: Test = ({ worker }) => cluster.suits(task, worker, victim.worker) !== 'no';
    this.add(this.poolFor(task).find(suitsAtAll));
    return this.compare(theft, suitsAtAll);
  }

  /** The best of the candidates and of the thieves that hold inputs. There are no candidates then. */
  private compare(theft: MutableTheft, suits: Test | undefined): Load | undefined {
    const { candidates } = this;
    const totalBytes = this.weighInputs(theft, suits);
    const best = this.best(theft.task, totalBytes, suits);
    const missingBytes = totalBytes - (best?.heldBytes ?? 0);
    theft.thiefTransferS = missingBytes / this.cluster.costs.bandwidth;
    for (const load of candidates) {
      load.heldBytes = 0;
      load.isCandidate = false;
    }
    candidates.length = 0;
    return best;
  }

  /** The candidate that could begin first. */
  private best(task: TaskView, totalBytes: number, suits: Test | undefined): Load | undefined {
    const { bandwidth } = this.cluster.costs;
    let best: Load | undefined;
    let bestS = 0;
    for (const load of this.candidates) {
      if (suits?.(load) === false) continue;
      const startS = load.perThreadS + (totalBytes - load.heldBytes) / bandwidth;
      if (best !== undefined && !comesBefore(task, load, startS, best, bestS)) continue;
      best = load;
      bestS = startS;
    }
    return best;
  }

  /**
   * Sums up the inputs, for each candidate those that it holds, and makes candidates of the thieves
   * that hold some. Returns the bytes of all.
   */
  private weighInputs(theft: MutableTheft, suits: Test | undefined): number {
    const { candidates, loads, cluster } = this;
    const { worker: victim } = theft.victim;
    let totalBytes = 0;
    let victimLacksBytes = 0;
    let widespread: TaskView[] | undefined;
    for (const input of theft.task.dependencies) {
      const nbytes = nbytesOf(input, cluster.costs);
      totalBytes += nbytes;
      if (!victim.hasWhat.has(input)) victimLacksBytes += nbytes;
      const { items } = input.whoHas;
      this.units += 1 + Math.min(items.length, COPIES_LOOKED_AT);
      if (items.length > COPIES_LOOKED_AT) {
        const holders = this.holdersOf(input);
        this.add(suits === undefined ? holders.top() : holders.find(suits));
        (widespread ??= []).push(input);
        continue;
      }
      for (const worker of items) {
        const load = loads.thief(worker);
        if (load === undefined) continue;
        this.add(load);
        load.heldBytes += nbytes;
      }
    }
    for (const input of widespread ?? []) {
      const nbytes = nbytesOf(input, cluster.costs);
      for (const load of candidates) if (load.worker.hasWhat.has(input)) load.heldBytes += nbytes;
      this.units += candidates.length;
    }
    theft.victimTransferS = victimLacksBytes / cluster.costs.bandwidth;
    return totalBytes;
  }

  /** The best of the workers that a task names, by the narrowest list that there is. */
  private addNamed(task: TaskView, suits: Test): void {
    const { workers, hosts } = task.restrictions ?? {};
    const named = (workers?.size ?? 0) + (hosts?.size ?? 0);
    this.units += NAMES_LOOKED_AT / 2;
    if (named > 0 && named <= NAMES_LOOKED_AT) {
      for (const address of workers ?? []) {
        const worker = this.cluster.workers.get(address);
        if (worker !== undefined) this.add(this.loads.thief(worker));
      }
      for (const name of hosts ?? []) this.add(this.poolOfHost(name).find(suits));
      return;
    }
    const pool = this.poolFor(task);
    this.add(pool.find(suits));
    // Actors go where there are few of them.
    if (task.isActor) this.add(pool.find((load) => load.worker.actors.size === 0 && suits(load)));
  }

  /** The workers that offer the first of the required resources, or all workers. */
  private poolFor({ restrictions }: TaskView): ThiefPool {
    const [resource] = restrictions?.resources?.keys() ?? [];
    return resource === undefined ? this.all : this.poolOf(resource);
  }

  private add(load: Load | undefined): void {
    if (load === undefined || load.isCandidate) return;
    load.isCandidate = true;
    this.candidates.push(load);
  }

  /** Thieves on that host, or on the host of the worker of that name. O(workers) for the first task that names it. */
  private poolOfHost(name: string): ThiefPool {
    let pool = this.byHost.get(name);
    if (pool === undefined) {
      const { workers } = this.cluster;
      let named: WorkerView | undefined;
      for (const worker of workers.values()) {
        if (worker.name === name) named ??= worker;
      }
      this.units += workers.size;
      pool = this.poolWhere(({ worker: { host } }) => host === name || host === named?.host);
      this.byHost.set(name, pool);
    }
    return pool;
  }

  private poolOf(resource: string): ThiefPool {
    let pool = this.byResource.get(resource);
    if (pool === undefined) {
      pool = this.poolWhere(({ worker }) => worker.resources.has(resource));
      this.byResource.set(resource, pool);
    }
    return pool;
  }

  private holdersOf(result: TaskView): ThiefPool {
    let pool = this.byInput.get(result);
    if (pool === undefined) {
      pool = this.poolWhere(({ worker }) => worker.hasWhat.has(result));
      this.byInput.set(result, pool);
    }
    return pool;
  }

  private poolWhere(belongs: (load: Load) => boolean): ThiefPool {
    this.units += this.members.length;
    return new ThiefPool(this.members.filter((load) => load.isThief && belongs(load)));
  }
}

function comesBefore(
  task: TaskView,
  load: Load,
  startS: number,
  best: Load,
  bestS: number,
): boolean {
  if (task.isActor && load.worker.actors.size !== best.worker.actors.size) {
    return load.worker.actors.size < best.worker.actors.size;
  }
  if (startS !== bestS) return startS < bestS;
  return load.nbytes !== best.nbytes ? load.nbytes < best.nbytes : load.rank < best.rank;
}

/** Members that are examined for a task that only some workers may run. */
const LOOKED_AT_MAX = 32;

interface Member {
  readonly load: Load;
  /** As it was when the member was last put into its place; a thief only gets more. */
  perThreadS: number;
}

/** Thieves, the one with the least work on top. Loads that have grown meanwhile are noticed. */
class ThiefPool {
  private readonly members = new MinHeap<Member>(byLoad);

  constructor(loads: Iterable<Load>) {
    for (const load of loads) this.members.push({ load, perThreadS: load.perThreadS });
  }

  /** The thief with the least work; undefined when no member is a thief any more. */
  top(): Load | undefined {
    const { members } = this;
    for (let first = members.peek(); first !== undefined; first = members.peek()) {
      const { load } = first;
      if (!load.isThief) {
        members.pop();
      } else if (first.perThreadS === load.perThreadS) {
        return load;
      } else {
        first.perThreadS = load.perThreadS;
        members.settleTop();
      }
    }
    return undefined;
  }

  /** The first that will do, of a limited number. */
  find(willDo: (load: Load) => boolean): Load | undefined {
    const { members } = this;
    const passedOver: Member[] = [];
    let found: Load | undefined;
    while (passedOver.length < LOOKED_AT_MAX) {
      const load = this.top();
      if (load === undefined) break;
      if (willDo(load)) {
        found = load;
        break;
      }
      passedOver.push(members.pop() as Member);
    }
    for (const member of passedOver) members.push(member);
    return found;
  }
}

function byLoad(a: Member, b: Member): number {
  if (a.perThreadS !== b.perThreadS) return a.perThreadS - b.perThreadS;
  if (a.load.nbytes !== b.load.nbytes) return a.load.nbytes - b.load.nbytes;
  return a.load.rank - b.load.rank;
}

/** Tasks of one level on one worker, the one that is stolen first on top. */
class Level {
  readonly tasks: MinHeap<TaskView>;
  /** Seconds that the shortest of them takes. */
  leastComputeS = Infinity;

  constructor(order: TaskOrder) {
    this.tasks = new MinHeap(order);
  }
}

/** A worker from which tasks are stolen in a round, with what there is to steal. */
export class Victim {
  /** True when its tasks have been examined. */
  isSearched = false;
  private readonly levels: (Level | undefined)[] = new Array<undefined>(LEVEL_COUNT);

  constructor(
    readonly load: Load,
    private readonly rules: RoundRules,
  ) {}

  level(level: number): Level | undefined {
    return this.levels[level];
  }

  /** Takes down a task, if it can be stolen at all and its prefix is not spared. */
  consider(task: TaskView, costs: ClusterView['costs'], spared: ReadonlySet<string>): void {
    if (!isStealable(task, this)) return;
    if (isSpared(task.prefix.name, costs, spared)) return;
    const index = this.rules.levelOf(task, costs);
    if (index === undefined) return;
    const level = (this.levels[index] ??= new Level(this.rules.order));
    const computeS = task.prefix.durationEstimateS;
    if (computeS < level.leastComputeS) level.leastComputeS = computeS;
    level.tasks.push(task);
  }
}

/** It is here, and may be asked for; things change between the slices of a round. */
export function isStealable(task: TaskView, { load }: Victim): boolean {
  const { worker } = load;
  if (task.processingOn !== worker) return false;
  if (worker.longRunning.size > 0 && worker.longRunning.has(task)) return false;
  const { steal } = task;
  return steal === undefined || steal.state === 'moved';
}

/** Tasks that are configured to be as short, in seconds, are not worth a message. */
const FAST_S = 0.001;

function isSpared(
  prefix: string,
  { defaultTaskDurationsS }: ClusterView['costs'],
  spared: ReadonlySet<string>,
): boolean {
  if (spared.has(prefix)) return true;
  if (defaultTaskDurationsS.size === 0) return false;
  return (defaultTaskDurationsS.get(prefix) ?? Infinity) <= FAST_S;
}
