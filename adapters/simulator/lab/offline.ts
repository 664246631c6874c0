import type { ConfigInput } from '../../app/config.ts';
import { SMALL_BYTES } from '../network.ts';
import {
  DEFAULT_DURATIONS,
  DEFAULT_NETWORK,
  type SimulationOptions,
  workerModels,
} from '../options.ts';
import { Draw } from '../random.ts';
import type { SimulatedWorkload } from '../../workloads/index.ts';

/** A task with all that a planner knows of it. */
interface KnownTask {
  readonly key: string;
  /** Seconds on a worker of speed 1, as they will be drawn. */
  readonly durationS: number;
  readonly nbytes: number;
  readonly needs: readonly KnownTask[];
  readonly dependents: KnownTask[];
}

interface KnownWorker {
  readonly threads: number;
  readonly speed: number;
  /** Bytes per second. */
  readonly bandwidth: number;
}

/** All that a planner needs to know everything. */
export interface Problem {
  /** Each after those that it needs. */
  readonly tasks: readonly KnownTask[];
  readonly workers: readonly KnownWorker[];
  readonly latencyS: number;
  /** False where each transfer has the whole link: then links are never occupied. */
  readonly sharesLinks: boolean;
}

/** The problem that a simulation with these options poses to a planner. */
export function problemOf(workload: SimulatedWorkload, options: SimulationOptions): Problem {
  const { spread } = { ...DEFAULT_DURATIONS, ...options.durations };
  const network = { ...DEFAULT_NETWORK, ...options.network };
  const draw = new Draw(options.seed ?? 1);
  const tasks = new Map<string, KnownTask>();
  workload.tasks.forEach(({ key, dependencies }, index) => {
    const task: KnownTask = {
      key,
      durationS: (workload.durationsS[index] ?? 0) * draw.factor(spread, key),
      nbytes: Math.round(workload.nbytes[index] ?? 0),
      needs: dependencies.flatMap((need) => tasks.get(need) ?? []),
      dependents: [],
    };
    for (const need of task.needs) need.dependents.push(task);
    tasks.set(key, task);
  });
  const workers = workerModels(options).map(({ threads = 1, speed = 1, ...model }) => {
    return { threads, speed, bandwidth: model.bandwidth ?? network.bandwidth };
  });
  const sharesLinks = network.sharing !== 'none';
  return { tasks: [...tasks.values()], workers, latencyS: network.latencyMs / 1000, sharesLinks };
}

/**
 * Seconds that no schedule can beat: the longest of
 *
 * - the critical path on the fastest worker, without transfers;
 * - the work divided by all threads, weighted by their speeds;
 * - for each task, the time to have its inputs on one worker: each was computed there, on its threads, or came over its
 *   link, and both began no sooner than the first of them could; then the task and the path behind it. Inputs may be
 *   divided between both at will, in fractions too, and inputs up to 64 KiB move in no time, as all do that share no link.
 *
 * Messages take no time here. O(tasks + needs * log needs).
 */
export function lowerBoundS({ tasks, workers, sharesLinks }: Problem): number {
  const speed = mostOf(workers, (worker) => worker.speed);
  const bandwidth = mostOf(workers, (worker) => worker.bandwidth);
  const power = mostOf(workers, powerOf);
  const tailsS = pathsS(tasks, ({ durationS }) => durationS / speed);
  const startsS = new Map<KnownTask, number>();
  let boundS = sumOf(tasks, ({ durationS }) => durationS) / sumOf(workers, powerOf);
  for (const task of tasks) {
    const { needs } = task;
    const beganS = (need: KnownTask): number => startsS.get(need) ?? 0;
    const costs = needs.map(({ durationS, nbytes }) => {
      const occupiesLink = sharesLinks && nbytes > SMALL_BYTES;
      return { hereS: durationS / power, movedS: occupiesLink ? nbytes / bandwidth : 0 };
    });
    const firstS = needs.reduce((first, need) => Math.min(first, beganS(need)), Infinity);
    const gatheredS = needs.length === 0 ? 0 : firstS + gatheringS(costs);
    const startS = Math.max(
      gatheredS,
      mostOf(needs, (need) => beganS(need) + need.durationS / speed),
    );
    startsS.set(task, startS);
    boundS = Math.max(boundS, startS + (tailsS.get(task) ?? 0));
  }
  return boundS;
}

function powerOf({ threads, speed }: KnownWorker): number {
  return threads * speed;
}

/** The least of max(sum computed here, sum moved) over all divisions of the inputs, in fractions. */
function gatheringS(inputs: { readonly hereS: number; readonly movedS: number }[]): number {
  const costs = inputs.filter(({ movedS }) => movedS > 0);
  // First to be computed here are those that save most of the link for their time.
  costs.sort((one, other) => other.movedS * one.hereS - one.movedS * other.hereS);
  let hereS = 0;
  let leftS = sumOf(costs, ({ movedS }) => movedS);
  for (const cost of costs) {
    if (hereS + cost.hereS >= leftS - cost.movedS) {
      return hereS + (cost.hereS * (leftS - hereS)) / (cost.hereS + cost.movedS);
    }
    hereS += cost.hereS;
    leftS -= cost.movedS;
  }
  return hereS;
}

/** The longest path from the start of each task to the end, by the costs of tasks and of fetching a result. */
function pathsS(
  tasks: readonly KnownTask[],
  runS: (task: KnownTask) => number,
  fetchS: (task: KnownTask) => number = () => 0,
): Map<KnownTask, number> {
  const paths = new Map<KnownTask, number>();
  for (const task of tasks.toReversed()) {
    const restS = mostOf(task.dependents, (next) => fetchS(task) + (paths.get(next) ?? 0));
    paths.set(task, runS(task) + restS);
  }
  return paths;
}

function sumOf<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + valueOf(item), 0);
}

/** The largest value; 0 of nothing. */
function mostOf<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((most, item) => Math.max(most, valueOf(item)), 0);
}

/** A place and a time for each task. */
export interface Plan {
  readonly places: ReadonlyMap<KnownTask, Slot>;
  /** As the planner estimates it. */
  readonly makespanS: number;
}

/**
 * Schedulers that know everything before the first task starts. Each places one task after the other and counts threads
 * and links as occupied from then on. A task fetches its inputs when all of them exist, one after the other, as soon as
 * its link and that of the sender are free.
 *
 * - `heft`: by the longest path to the end with transfers, on the worker where it ends first, in gaps too (HEFT with
 *   insertion, Topcuoglu, Hariri and Wu, 2002)
 * - `thrifty`: the same, where each second of a transfer counts twice: links are left to others
 * - `blevel`: by the longest path to the end without transfers
 * - `lookahead`: as `heft`; the worker is the one where the most urgent dependent would end first
 * - `single`: all on the worker with the most power, which moves nothing
 */
export const PLANNERS = {
  heft: (problem) => plan(problem, ranks(problem), ({ endS }) => endS),
  thrifty: (problem) => plan(problem, ranks(problem), ({ endS, movingS }) => endS + movingS),
  blevel: (problem) => plan(problem, levels(problem), ({ endS }) => endS),
  lookahead: (problem) => plan(problem, ranks(problem), dependentEndS),
  single: (problem) => {
    const most = mostOf(problem.workers, powerOf);
    const strongest = problem.workers.findIndex((worker) => powerOf(worker) === most);
    return plan(problem, levels(problem), ({ worker, endS }) =>
      worker.number === strongest ? endS : Infinity,
    );
  },
} as const satisfies Readonly<Record<string, (problem: Problem) => Plan>>;

/** One of {@link PLANNERS}. */
export type PlannerName = keyof typeof PLANNERS;

function ranks({ tasks, workers }: Problem): Map<KnownTask, number> {
  const { length } = workers;
  const speed = sumOf(workers, (worker) => worker.speed) / length;
  const bandwidth = sumOf(workers, (worker) => worker.bandwidth) / length;
  // A transfer is needed unless both tasks share the worker.
  const bytesS = (1 - 1 / length) / bandwidth;
  return pathsS(
    tasks,
    ({ durationS }) => durationS / speed,
    ({ nbytes }) => nbytes * bytesS,
  );
}

function levels({ tasks }: Problem): Map<KnownTask, number> {
  return pathsS(tasks, ({ durationS }) => durationS);
}

/** A worker with what is planned on it. */
interface BusyWorker extends KnownWorker {
  readonly number: number;
  readonly lanes: readonly Busy[];
  readonly incoming: Busy;
  readonly outgoing: Busy;
}

/** A place and a time for a task. */
interface Slot {
  readonly task: KnownTask;
  readonly worker: BusyWorker;
  readonly lane: Busy;
  readonly startS: number;
  readonly endS: number;
  /** Seconds for which links are occupied. */
  readonly movingS: number;
  readonly moves: readonly {
    readonly need: Placed;
    readonly startS: number;
    readonly endS: number;
  }[];
}

/** A task that has its place, and the times from which workers have its result. */
interface Placed extends Slot {
  readonly copies: Map<BusyWorker, number>;
}

/** The state of a plan in the making. */
interface Board {
  readonly workers: readonly BusyWorker[];
  readonly placed: Map<KnownTask, Placed>;
  readonly pathsS: ReadonlyMap<KnownTask, number>;
}

/** Lower is better. */
type Judge = (slot: Slot, board: Board) => number;

/** The end of the most urgent dependent on the worker that suits it best; links are taken to be free. */
function dependentEndS(slot: Slot, { workers, placed, pathsS: paths }: Board): number {
  const urgencyOf = (task: KnownTask): number => paths.get(task) ?? 0;
  const [first, ...others] = slot.task.dependents;
  if (first === undefined) return slot.endS;
  const next = others.reduce((one, two) => (urgencyOf(two) > urgencyOf(one) ? two : one), first);
  const endsS = workers.map((worker) => {
    const readyS = mostOf(next.needs, (need) => {
      const place = need === slot.task ? slot : placed.get(need);
      if (place === undefined) return 0;
      return place.endS + (place.worker === worker ? 0 : need.nbytes / worker.bandwidth);
    });
    const freeS = Math.min(...worker.lanes.map((lane) => lane.lastS));
    const startS = Math.max(readyS, worker === slot.worker ? 0 : freeS);
    return startS + next.durationS / worker.speed;
  });
  return Math.min(...endsS);
}

/** Places the tasks, longest path first, each where it is judged best. O(tasks * workers * (threads + needs)) slots. */
function plan(problem: Problem, paths: ReadonlyMap<KnownTask, number>, judge: Judge): Plan {
  const { tasks, sharesLinks } = problem;
  const workers = problem.workers.map((model, number): BusyWorker => {
    const lanes = Array.from({ length: model.threads }, () => new Busy());
    return { ...model, number, lanes, incoming: new Busy(), outgoing: new Busy() };
  });
  const placed = new Map<KnownTask, Placed>();
  const board: Board = { workers, placed, pathsS: paths };
  // The order is stable, so that dependencies come first also where both paths are equally long.
  const order = tasks.toSorted((one, other) => (paths.get(other) ?? 0) - (paths.get(one) ?? 0));
  for (const task of order) {
    const inputs = task.needs.map((need) => placed.get(need) as Placed);
    let best: Slot | undefined;
    let leastS = Infinity;
    for (const worker of workers) {
      const slot = slotOn(task, worker, inputs, problem);
      const costS = judge(slot, board);
      if (costS < leastS) [best, leastS] = [slot, costS];
    }
    const { worker, lane, startS, endS, moves } = best as Slot;
    lane.add(startS, endS);
    for (const { need, startS: fromS, endS: toS } of moves) {
      need.copies.set(worker, toS);
      if (!sharesLinks) continue;
      need.worker.outgoing.add(fromS, toS);
      worker.incoming.add(fromS, toS);
    }
    placed.set(task, { ...(best as Slot), copies: new Map([[worker, endS]]) });
  }
  return { places: placed, makespanS: mostOf([...placed.values()], ({ endS }) => endS) };
}

/** The first time at which a worker could run a task. */
function slotOn(
  task: KnownTask,
  worker: BusyWorker,
  inputs: readonly Placed[],
  { latencyS, sharesLinks }: Problem,
): Slot {
  // The report of the last input, and the message with the task.
  let readyS = latencyS + mostOf(inputs, ({ endS }) => endS + latencyS);
  const askedS = readyS;
  let linkS = readyS;
  const moves: Slot['moves'][number][] = [];
  for (const need of inputs) {
    const hereS = need.copies.get(worker);
    if (hereS === undefined) {
      const forS = need.task.nbytes / Math.min(worker.bandwidth, need.worker.bandwidth);
      const startS = sharesLinks
        ? firstGap(worker.incoming, need.worker.outgoing, linkS, forS)
        : askedS;
      linkS = startS + forS;
      moves.push({ need, startS, endS: linkS });
    }
    readyS = Math.max(readyS, hereS ?? linkS + latencyS);
  }
  const runS = task.durationS / worker.speed;
  const starts = worker.lanes.map((lane) => lane.gap(readyS, runS));
  const startS = Math.min(...starts);
  const lane = worker.lanes[starts.indexOf(startS)] as Busy;
  const movingS = sumOf(moves, (move) => move.endS - move.startS);
  return { task, worker, lane, startS, endS: startS + runS, movingS, moves };
}

/** The times at which a thread or a link is occupied; neighbours are joined. */
class Busy {
  private readonly spans: { fromS: number; toS: number }[] = [];

  get lastS(): number {
    return this.spans.at(-1)?.toS ?? 0;
  }

  /** The first time from which it is free for so long. */
  gap(fromS: number, forS: number): number {
    let atS = fromS;
    for (let index = this.endingAfter(fromS); index < this.spans.length; index++) {
      const span = this.spans[index] as { fromS: number; toS: number };
      if (atS + forS <= span.fromS) return atS;
      atS = Math.max(atS, span.toS);
    }
    return atS;
  }

  add(fromS: number, toS: number): void {
    if (toS <= fromS) return;
    const index = this.endingAfter(fromS);
    const [before, next] = [this.spans[index - 1], this.spans[index]];
    if (before?.toS === fromS) before.toS = toS;
    else if (next?.fromS === toS) next.fromS = fromS;
    else this.spans.splice(index, 0, { fromS, toS });
  }

  /** The index of the first span that ends later. */
  private endingAfter(timeS: number): number {
    let low = 0;
    let high = this.spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.spans[middle]?.toS ?? 0) <= timeS) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The first time from which two links are free for so long. */
function firstGap(one: Busy, other: Busy, fromS: number, forS: number): number {
  for (let atS = fromS; ;) {
    const next = other.gap(one.gap(atS, forS), forS);
    if (next === atS) return atS;
    atS = next;
  }
}

/**
 * The configuration that carries a plan out in a simulation: each task goes to its worker, and workers run what is ready
 * by the planned starts. Nothing is held back or stolen. So the makespan of a plan is not the estimate of its planner, but
 * that of the same scheduler, workers, links and messages as of every other policy; only the knowledge is different.
 */
export function followPlan(
  name: PlannerName,
  workload: SimulatedWorkload,
  options: SimulationOptions,
): ConfigInput {
  const planned = [...PLANNERS[name](problemOf(workload, options)).places];
  const names = new Map(planned.map(([{ key }, { worker }]) => [key, `w${worker.number + 1}`]));
  // Stable: a task without a duration stays behind what it needs.
  planned.sort(([, one], [, other]) => one.startS - other.startS);
  const ranksByKey = new Map(planned.map(([{ key }], rank) => [key, rank]));
  interface Keyed {
    readonly key: string;
  }
  const workerSelection = {
    name: 'planned',
    reach: 'all',
    select: ({ key }: Keyed, candidates: readonly { readonly name: string }[]) =>
      candidates.find((worker) => worker.name === names.get(key)),
  };
  const ordering = {
    name: 'planned',
    order: (tasks: readonly Keyed[]) =>
      Int32Array.from(tasks, ({ key }) => ranksByKey.get(key) ?? 0),
  };
  return {
    scheduler: {
      workStealing: { start: false },
      policies: {
        workerSelection: { use: workerSelection },
        queuing: { use: 'direct' },
        ordering: { use: ordering },
      },
    },
  };
}
