import type { ConfigInput } from '../../app/config.ts';
import {
  DEFAULT_DURATIONS,
  DEFAULT_NETWORK,
  type SimulationOptions,
  workerModels,
} from '../options.ts';
import { SMALL_BYTES } from '../network.ts';
import { Draw } from '../random.ts';
import type { SimulatedWorkload } from '../simulation.ts';

/** A graph, the costs that its tasks will have, and the cluster: all that a planner needs to know everything. */
export interface Problem {
  /** Numbers of the tasks that each task needs; smaller than its own. */
  readonly needs: readonly (readonly number[])[];
  readonly dependents: readonly (readonly number[])[];
  /** Seconds of each task on a worker of speed 1, as they will be drawn. */
  readonly durationsS: readonly number[];
  readonly nbytes: readonly number[];
  readonly keys: readonly string[];
  readonly workers: readonly {
    readonly threads: number;
    readonly speed: number;
    /** Bytes per second. */
    readonly bandwidth: number;
  }[];
  readonly latencyS: number;
}

/** The problem that a simulation with these options poses to a planner. */
export function problemOf(workload: SimulatedWorkload, options: SimulationOptions): Problem {
  const { spread } = { ...DEFAULT_DURATIONS, ...options.durations };
  const network = { ...DEFAULT_NETWORK, ...options.network };
  const draw = new Draw(options.seed ?? 1);
  const tasks = inOrder(workload.tasks);
  const numbers = new Map(tasks.map(({ task }, number) => [task.key, number]));
  const needs = tasks.map(({ task }) => task.dependencies.flatMap((key) => numbers.get(key) ?? []));
  const dependents = tasks.map((): number[] => []);
  needs.forEach((list, number) => {
    for (const need of list) dependents[need]?.push(number);
  });
  return {
    needs,
    dependents,
    keys: tasks.map(({ task }) => task.key),
    durationsS: tasks.map(
      ({ task, index }) => (workload.durationsS[index] ?? 0) * draw.factor(spread, task.key),
    ),
    nbytes: tasks.map(({ index }) => Math.round(workload.nbytes[index] ?? 0)),
    workers: workerModels(options).map(({ threads = 1, speed = 1, bandwidth }) => {
      return { threads, speed, bandwidth: bandwidth ?? network.bandwidth };
    }),
    latencyS: network.latencyMs / 1000,
  };
}

interface Placed<T> {
  readonly task: T;
  readonly index: number;
}

/** Tasks with their positions, each after those that it needs. O(tasks + needs). */
function inOrder<T extends { readonly key: string; readonly dependencies: readonly string[] }>(
  tasks: readonly T[],
): Placed<T>[] {
  const byKey = new Map(tasks.map((task, index) => [task.key, { task, index }]));
  const found = new Set<Placed<T>>();
  const open = [...byKey.values()].reverse();
  const entered = new Set<Placed<T>>();
  for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
    if (entered.has(next)) {
      open.pop();
      found.add(next);
      continue;
    }
    entered.add(next);
    for (const key of next.task.dependencies) {
      const need = byKey.get(key);
      if (need !== undefined && !entered.has(need)) open.push(need);
    }
  }
  return [...found];
}

/**
 * Seconds that no schedule can beat: the longest of
 *
 * - the critical path on the fastest worker, without transfers;
 * - the work divided by all threads, weighted by their speeds;
 * - for each task with several inputs, the time to have them all on one worker: each was computed there, on its
 *   threads, or came over its link, and both began no sooner than the first of them could; then the task and the path
 *   behind it. Inputs may be divided between both at will, in fractions too, and inputs up to 64 KiB move in no time.
 *
 * Messages take no time here. O(tasks + needs * log needs).
 */
export function lowerBoundS(problem: Problem): number {
  const { needs, durationsS, nbytes, workers } = problem;
  const speed = Math.max(...workers.map((worker) => worker.speed));
  const power = workers.map((worker) => worker.threads * worker.speed);
  const strongest = Math.max(...power);
  const bandwidth = Math.max(...workers.map((worker) => worker.bandwidth));
  const shortestS = durationsS.map((durationS) => durationS / speed);
  const tailsS = tails(problem, (number) => shortestS[number] as number);
  const startsS: number[] = [];
  let boundS = durationsS.reduce((sum, each) => sum + each, 0) / sum(power);
  needs.forEach((inputs, number) => {
    let startS = 0;
    for (const input of inputs) {
      startS = Math.max(startS, (startsS[input] as number) + (shortestS[input] as number));
    }
    if (inputs.length > 1) {
      const firstS = Math.min(...inputs.map((input) => startsS[input] as number));
      const costs = inputs.map((input) => {
        const bytes = nbytes[input] as number;
        return {
          hereS: (durationsS[input] as number) / strongest,
          movedS: bytes > SMALL_BYTES ? bytes / bandwidth : 0,
        };
      });
      startS = Math.max(startS, firstS + gatheringS(costs));
    }
    startsS.push(startS);
    boundS = Math.max(boundS, startS + (tailsS[number] as number));
  });
  return boundS;
}

/** The least of max(sum computed here, sum moved) over all divisions of the inputs, in fractions. */
function gatheringS(
  inputs: readonly { readonly hereS: number; readonly movedS: number }[],
): number {
  const costs = inputs.filter(({ movedS }) => movedS > 0);
  // First to be computed here are those that save most of the link for their time.
  costs.sort((one, other) => other.movedS * one.hereS - one.movedS * other.hereS);
  let hereS = 0;
  let movedS = sum(costs.map((cost) => cost.movedS));
  for (const cost of costs) {
    if (hereS + cost.hereS >= movedS - cost.movedS) {
      const part = (movedS - hereS) / (cost.hereS + cost.movedS);
      return hereS + part * cost.hereS;
    }
    hereS += cost.hereS;
    movedS -= cost.movedS;
  }
  return hereS;
}

/** For each task the most that lies between its start and the end, by a cost of tasks and one of inputs. */
function tails(
  { dependents }: Problem,
  costS: (number: number) => number,
  moveS: (number: number) => number = () => 0,
): number[] {
  const tailsS = dependents.map(() => 0);
  for (let number = dependents.length - 1; number >= 0; number--) {
    let restS = 0;
    for (const next of dependents[number] as readonly number[]) {
      restS = Math.max(restS, moveS(number) + (tailsS[next] as number));
    }
    tailsS[number] = costS(number) + restS;
  }
  return tailsS;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A worker and a start for each task. */
export interface Plan {
  readonly workers: readonly number[];
  readonly startsS: readonly number[];
  /** As the planner estimates it. */
  readonly makespanS: number;
}

/**
 * Schedulers that know everything before the first task starts. Each places one task after the other and counts threads
 * and links as occupied from then on; a task fetches its inputs when all of them exist, one after the other over its
 * link, as soon as it and the link of the sender are free.
 *
 * - `heft`: by the longest path to the end with transfers, on the worker where it ends first, in gaps too (HEFT with
 *   insertion, Topcuoglu, Hariri and Wu, 2002)
 * - `thrifty`: the same, where each second of a transfer counts twice: links are left to others
 * - `blevel`: in the order in which tasks become ready, longest path to the end without transfers first
 * - `lookahead`: as `heft`; the worker is the one where the most urgent dependent would end first
 * - `single`: all on the worker with the most power, which moves nothing
 */
export const PLANNERS = {
  heft: (problem) => plan(problem, byRank(problem), endS),
  thrifty: (problem) => plan(problem, byRank(problem), (slot) => slot.endS + slot.movingS),
  blevel: (problem) => plan(problem, byReadiness(problem), endS),
  lookahead: (problem) => plan(problem, byRank(problem), dependentEndS),
  single: (problem) => {
    const powers = problem.workers.map(({ threads, speed }) => threads * speed);
    const strongest = powers.indexOf(Math.max(...powers));
    return plan(problem, byRank(problem), endS, [strongest]);
  },
} as const satisfies Readonly<Record<string, (problem: Problem) => Plan>>;

/** One of {@link PLANNERS}. */
export type PlannerName = keyof typeof PLANNERS;

/** A place and a time for a task. */
interface Slot {
  readonly number: number;
  readonly worker: number;
  readonly thread: Busy;
  readonly startS: number;
  readonly endS: number;
  /** Seconds for which links are occupied. */
  readonly movingS: number;
  readonly moves: readonly {
    readonly from: Busy;
    readonly need: number;
    startS: number;
    forS: number;
  }[];
}

/** Lower is better. */
type Judge = (slot: Slot, board: Board) => number;

const endS: Judge = (slot) => slot.endS;

/** Dependents that a lookahead considers. */
const LOOKED_AT = 4;

/** The end of the most urgent dependents, each on the worker that suits it best; links are taken to be free. */
const dependentEndS: Judge = (slot, { problem, ranksS, places, endsS, freeFromS }) => {
  const { dependents, needs, nbytes, durationsS, workers } = problem;
  const urgent = (dependents[slot.number] as readonly number[])
    .toSorted((one, other) => (ranksS[other] as number) - (ranksS[one] as number))
    .slice(0, LOOKED_AT);
  let worstS = slot.endS;
  for (const next of urgent) {
    let bestS = Infinity;
    workers.forEach(({ speed, bandwidth }, worker) => {
      let readyS = worker === slot.worker ? slot.endS : freeFromS(worker);
      for (const need of needs[next] as readonly number[]) {
        const place = need === slot.number ? slot.worker : places[need];
        if (place === undefined) continue;
        const doneS = need === slot.number ? slot.endS : (endsS[need] as number);
        const movingS = place === worker ? 0 : (nbytes[need] as number) / bandwidth;
        readyS = Math.max(readyS, doneS + movingS);
      }
      bestS = Math.min(bestS, readyS + (durationsS[next] as number) / speed);
    });
    worstS = Math.max(worstS, bestS);
  }
  return worstS;
};

/** The state of a plan in the making. */
interface Board {
  readonly problem: Problem;
  /** Seconds of the longest path to the end, transfers included. */
  readonly ranksS: readonly number[];
  /** Worker and end of each task that is placed. */
  readonly places: (number | undefined)[];
  readonly endsS: number[];
  /** The time from which a thread of a worker is free for good. */
  readonly freeFromS: (worker: number) => number;
}

function ranksOf(problem: Problem): number[] {
  const { workers, durationsS, nbytes } = problem;
  const speed = sum(workers.map((worker) => worker.speed)) / workers.length;
  const bandwidth = sum(workers.map((worker) => worker.bandwidth)) / workers.length;
  // A transfer is needed unless both tasks share the worker.
  const share = 1 - 1 / workers.length;
  return tails(
    problem,
    (number) => (durationsS[number] as number) / speed,
    (number) => (share * (nbytes[number] as number)) / bandwidth,
  );
}

function byRank(problem: Problem): number[] {
  const ranksS = ranksOf(problem);
  // Dependencies come first also where both ranks are the same.
  return ranksS
    .map((_, number) => number)
    .sort((one, other) => (ranksS[other] as number) - (ranksS[one] as number) || one - other);
}

/** The order in which a list scheduler with as many equal threads takes the tasks; it ignores transfers. */
function byReadiness(problem: Problem): number[] {
  const { needs, dependents, durationsS, workers } = problem;
  const levelsS = tails(problem, (number) => durationsS[number] as number);
  const threads = sum(workers.map((worker) => worker.threads));
  const missing = needs.map((list) => list.length);
  const ready = needs.flatMap((list, number) => (list.length === 0 ? [number] : []));
  const running: { number: number; endS: number }[] = [];
  const order: number[] = [];
  let nowS = 0;
  while (ready.length + running.length > 0) {
    ready.sort((one, other) => (levelsS[one] as number) - (levelsS[other] as number));
    while (running.length < threads && ready.length > 0) {
      const number = ready.pop() as number;
      order.push(number);
      running.push({ number, endS: nowS + (durationsS[number] as number) });
    }
    running.sort((one, other) => other.endS - one.endS);
    const ended = running.pop() as { number: number; endS: number };
    nowS = ended.endS;
    for (const next of dependents[ended.number] as readonly number[]) {
      missing[next] = (missing[next] as number) - 1;
      if (missing[next] === 0) ready.push(next);
    }
  }
  return order;
}

/** Places the tasks in an order, each on the worker that is judged best. O(tasks * workers * (threads + needs)) slots. */
function plan(
  problem: Problem,
  order: readonly number[],
  judge: Judge,
  candidates: readonly number[] = problem.workers.map((_, worker) => worker),
): Plan {
  const { needs, nbytes, durationsS, workers, latencyS } = problem;
  const threads = workers.map((worker) => Array.from({ length: worker.threads }, () => new Busy()));
  const incoming = workers.map(() => new Busy());
  const outgoing = workers.map(() => new Busy());
  /** Times from which a result is on a worker, by task and worker. */
  const copies = needs.map(() => new Map<number, number>());
  const startsS: number[] = [];
  const board: Board = {
    problem,
    ranksS: ranksOf(problem),
    places: [],
    endsS: [],
    freeFromS: (worker) => Math.min(...(threads[worker] as Busy[]).map((thread) => thread.lastS)),
  };
  const slotOn = (number: number, worker: number): Slot => {
    const { bandwidth, speed } = workers[worker] as (typeof workers)[number];
    const link = incoming[worker] as Busy;
    let assignedS = 0;
    for (const need of needs[number] as readonly number[]) {
      assignedS = Math.max(assignedS, (board.endsS[need] as number) + latencyS);
    }
    let readyS = assignedS + latencyS;
    let linkS = readyS;
    let movingS = 0;
    const moves: Slot['moves'][number][] = [];
    for (const need of needs[number] as readonly number[]) {
      const hereS = (copies[need] as Map<number, number>).get(worker);
      if (hereS !== undefined) {
        readyS = Math.max(readyS, hereS);
        continue;
      }
      const source = board.places[need] as number;
      const forS =
        (nbytes[need] as number) /
        Math.min(bandwidth, (workers[source] as (typeof workers)[number]).bandwidth);
      const from = outgoing[source] as Busy;
      const startS = firstGap(link, from, linkS, forS);
      linkS = startS + forS;
      readyS = Math.max(readyS, linkS + latencyS);
      movingS += forS;
      moves.push({ from, need, startS, forS });
    }
    const runsS = (durationsS[number] as number) / speed;
    let thread: Busy | undefined;
    let startS = Infinity;
    for (const each of threads[worker] as Busy[]) {
      const gapS = each.gap(readyS, runsS);
      if (gapS < startS) [thread, startS] = [each, gapS];
    }
    const slot = { number, worker, startS, endS: startS + runsS, movingS, moves };
    return { ...slot, thread: thread as Busy };
  };
  let makespanS = 0;
  for (const number of order) {
    let best: Slot | undefined;
    let leastS = Infinity;
    for (const worker of candidates) {
      const slot = slotOn(number, worker);
      const costS = judge(slot, board);
      if (costS < leastS) [best, leastS] = [slot, costS];
    }
    const { worker, thread, startS, endS: doneS, moves } = best as Slot;
    thread.add(startS, doneS);
    for (const { from, need, startS: fromS, forS } of moves) {
      from.add(fromS, fromS + forS);
      (incoming[worker] as Busy).add(fromS, fromS + forS);
      (copies[need] as Map<number, number>).set(worker, fromS + forS);
    }
    board.places[number] = worker;
    board.endsS[number] = doneS;
    startsS[number] = startS;
    (copies[number] as Map<number, number>).set(worker, doneS);
    makespanS = Math.max(makespanS, doneS);
  }
  return { workers: board.places as number[], startsS, makespanS };
}

/** The times at which a thread or a link is occupied; neighbours are joined. */
class Busy {
  private readonly startsS: number[] = [];
  private readonly endsS: number[] = [];

  get lastS(): number {
    return this.endsS.at(-1) ?? 0;
  }

  /** The first time from which it is free for so long. */
  gap(fromS: number, forS: number): number {
    const { startsS, endsS } = this;
    let atS = fromS;
    for (let index = this.firstEndingAfter(fromS); index < startsS.length; index++) {
      if (atS + forS <= (startsS[index] as number)) return atS;
      atS = Math.max(atS, endsS[index] as number);
    }
    return atS;
  }

  add(startS: number, endS: number): void {
    if (endS <= startS) return;
    const { startsS, endsS } = this;
    const index = this.firstEndingAfter(startS);
    const joinsBefore = index > 0 && endsS[index - 1] === startS;
    const joinsNext = startsS[index] === endS;
    if (joinsBefore && joinsNext) {
      endsS.splice(index - 1, 1);
      startsS.splice(index, 1);
    } else if (joinsBefore) endsS[index - 1] = endS;
    else if (joinsNext) startsS[index] = startS;
    else {
      startsS.splice(index, 0, startS);
      endsS.splice(index, 0, endS);
    }
  }

  private firstEndingAfter(timeS: number): number {
    const { endsS } = this;
    let low = 0;
    let high = endsS.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((endsS[middle] as number) <= timeS) low = middle + 1;
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
 * The configuration that carries a plan out in a simulation: each task goes to its worker, and workers run what is
 * ready by the planned starts. Nothing is held back or stolen. So the makespan of a plan is not the estimate of its
 * planner, but that of the same scheduler, workers, links and messages as of every other policy; only the knowledge is
 * different.
 */
export function followPlan(
  name: PlannerName,
  workload: SimulatedWorkload,
  options: SimulationOptions,
): ConfigInput {
  const problem = problemOf(workload, options);
  const { workers, startsS } = PLANNERS[name](problem);
  const order = startsS
    .map((_, number) => number)
    .sort((one, other) => (startsS[one] as number) - (startsS[other] as number) || one - other);
  const ranks = new Map(order.map((number, rank) => [problem.keys[number] as string, rank]));
  const places = new Map(
    problem.keys.map((key, number) => [key, `w${(workers[number] as number) + 1}`]),
  );
  return {
    scheduler: {
      workStealing: { start: false },
      policies: {
        workerSelection: {
          use: {
            name: 'planned',
            reach: 'all',
            select: ({ key }: { readonly key: string }, candidates: readonly { name: string }[]) =>
              candidates.find((worker) => worker.name === places.get(key)),
          },
        },
        queuing: { use: 'direct' },
        ordering: {
          use: {
            name: 'planned',
            order: (tasks: readonly { readonly key: string }[]) =>
              Int32Array.from(tasks, ({ key }) => ranks.get(key) ?? 0),
          },
        },
      },
    },
  };
}
