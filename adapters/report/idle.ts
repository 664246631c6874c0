/**
 * Says why threads were idle. A sweep over the time of the work looks at each moment in which something could have run or
 * did, and gives the idle threads of that moment to causes.
 */
import type { History } from './history.ts';
import { timeOf } from './time-spent.ts';

/** Causes of idle threads. */
export const IDLE_CAUSES = [
  /** Workers were paused, or read results from disk. */
  'memory',
  /** Inputs were on their way. */
  'transfers',
  /** Tasks waited that only some workers may run, or only so many at a time. */
  'restrictions',
  /** Tasks waited on workers whose threads were busy, and others were idle. */
  'placement',
  /** Tasks waited at the scheduler. */
  'queued',
  /** Tasks were on their way to the thread, or the news of their end was on its way to the scheduler. */
  'handOut',
  /** Nothing else could run beside a run that took much longer than others like it. */
  'straggler',
  /** Nothing else could run beside the runs of a worker that is slower than others. */
  'slowWorker',
  /** The last of many equal tasks ran, and nothing came after them. */
  'tail',
  /** Few tasks could run. */
  'serial',
] as const;

export type IdleCause = (typeof IDLE_CAUSES)[number];

/** The idle threads of a piece of work, by cause. */
export interface IdleTime {
  /**
   * Seconds of the time of the work that each cause explains: a moment in which half of the threads were idle counts half,
   * one in which none computed counts whole.
   */
  readonly explainedS: Readonly<Record<IdleCause, number>>;
  /** Seconds in which all threads computed while tasks waited. */
  readonly fullS: number;
  /** Tasks per thread that a worker had at most at one time while others waited at the scheduler. */
  readonly assignedMax: number;
  /** Tasks that waited at the scheduler at most while threads were idle. */
  readonly queuedMax: number;
  /** The longest stretch for which the cause `serial` held, but for short gaps. */
  readonly stretch: readonly [fromS: number, toS: number];
  /** The part of `serial` by number of the prefix that ran meanwhile, the largest first. */
  readonly serialPrefixes: readonly (readonly [prefix: number, seconds: number])[];
}

/** Findings of runs and workers that stand out. */
export interface Outliers {
  readonly isSlow: (worker: number) => boolean;
  readonly slownessOf: (worker: number) => number;
  /** Seconds that the runs of a prefix usually take, when enough of them are known. */
  readonly usualS: (prefix: number) => number | undefined;
  readonly runsOf: (prefix: number) => number;
}

/** A run is a straggler from this multiple of the usual duration on. */
export const STRAGGLES = 4;

/** Intervals of a run, `free` when nothing kept it from any thread; the last two are of a worker. */
const KIND = {
  ...{ queued: 0, queuedHeld: 1, sent: 2, sentHeld: 3, fetching: 4, disk: 5, running: 6 },
  ...{ reporting: 7, assigned: 8, straggling: 9, slowed: 10, common: 11 },
  ...{ free: 12, present: 13, paused: 14 },
} as const;

const KINDS = 15;

type Kind = (typeof KIND)[keyof typeof KIND];

/** Intervals of all runs and workers as events, in columns: a million runs make ten million of them. */
class Timeline {
  private readonly timesS: number[] = [];
  private readonly codes: number[] = [];
  private readonly owners: number[] = [];

  /** @param owner - number of the run or of the worker */
  add(kind: Kind, owner: number, fromS: number, toS: number): void {
    if (!(toS > fromS)) return;
    this.timesS.push(fromS, toS);
    this.codes.push(2 * kind + 1, 2 * kind);
    this.owners.push(owner, owner);
  }

  /** Calls back for each event in the order of time. O(n log n) */
  play(visit: (atS: number, kind: Kind, change: 1 | -1, owner: number) => void): void {
    const { timesS, codes, owners } = this;
    const order = Uint32Array.from(timesS, (_, index) => index);
    order.sort((a, b) => timesS[a]! - timesS[b]! || codes[a]! - codes[b]!);
    for (const index of order) {
      const code = codes[index]!;
      visit(timesS[index]!, code >> 1, (code & 1) === 1 ? 1 : -1, owners[index]!);
    }
  }
}

/** Inputs of fewer bytes are there soon. */
const LARGE_BYTES = 1e6;

function timelineOf({ runs, workers, toS: endS }: History, outliers: Outliers): Timeline {
  const timeline = new Timeline();
  const { isSlow, slownessOf, usualS, runsOf } = outliers;
  const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
  workers.forEach(({ fromS, toS = endS, pausedS = [] }, number) => {
    timeline.add(KIND.present, number, fromS, toS);
    for (const [from, to = toS] of pausedS) timeline.add(KIND.paused, number, from, to);
  });
  runs.forEach((run, number) => {
    const { readyS, assignedS, finishedS, heldBy, prefix, worker } = run;
    const isHeld = heldBy !== undefined;
    timeline.add(isHeld ? KIND.queuedHeld : KIND.queued, number, readyS, assignedS);
    timeline.add(KIND.assigned, number, assignedS, finishedS);
    let atS = assignedS;
    let hasRun = false;
    const waiting = isHeld ? KIND.sentHeld : KIND.sent;
    const firstS = run.timings.find(({ action }) => action === 'compute')?.startS ?? finishedS;
    // Its inputs are on their way, be it for another task or from a disk.
    if (run.movedBytes >= LARGE_BYTES)
      timeline.add(KIND.fetching, number, assignedS, Math.min(firstS, finishedS));
    for (const { action, startS, stopS } of run.timings.toSorted((a, b) => a.startS - b.startS)) {
      const fromS = Math.min(Math.max(startS, atS), finishedS);
      const toS = Math.min(Math.max(stopS, fromS), finishedS);
      timeline.add(hasRun ? KIND.reporting : waiting, number, atS, fromS);
      timeline.add(kindOf(action), number, fromS, toS);
      atS = toS;
      if (action !== 'compute') continue;
      if (!isHeld) timeline.add(KIND.free, number, fromS, toS);
      hasRun = true;
      const usual = usualS(prefix);
      // It may have begun before the time that is looked at.
      const tookS = stopS - startS;
      const lateFrom = (usualEndS: number): number => Math.max(fromS, usualEndS);
      if (isSlow(worker)) {
        timeline.add(KIND.slowed, number, lateFrom(startS + tookS / slownessOf(worker)), toS);
      } else if (usual !== undefined && tookS > STRAGGLES * usual) {
        timeline.add(KIND.straggling, number, lateFrom(startS + usual), toS);
      }
      const isLink = runs[run.lastInput]?.prefix === prefix;
      if (runsOf(prefix) > threads && !isLink) timeline.add(KIND.common, number, fromS, toS);
    }
    timeline.add(run.timings.length > 0 ? KIND.reporting : waiting, number, atS, finishedS);
  });
  return timeline;
}

function kindOf(action: string): Kind {
  if (action === 'compute') return KIND.running;
  if (action === 'transfer') return KIND.fetching;
  return action.startsWith('disk') ? KIND.disk : KIND.reporting;
}

/** Seconds that a run is expected to take of whose prefix nothing is known: as the scheduler does. */
const UNKNOWN_S = 0.5;

/** Seconds that threads would have computed what was kept from them. */
function heldWorkS({ runs }: History, { usualS }: Outliers): number {
  return runs.reduce((sum, { heldBy, prefix, timings }) => {
    if (heldBy === undefined) return sum;
    const hasRun = timings.some(({ action }) => action === 'compute');
    return sum + (hasRun ? timeOf(timings).runS : (usualS(prefix) ?? UNKNOWN_S));
  }, 0);
}

/** The share of the time of the work beyond which a gap ends a stretch. */
const GAP = 0.05;

/** O(n log n) in the runs. */
export function idleTimeOf(history: History, outliers: Outliers): IdleTime {
  const { runs, workers } = history;
  const counts = new Counts(workers.map(({ threads }) => threads));
  const explainedS = Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, 0])) as Record<
    IdleCause,
    number
  >;
  const serialByPrefix = new Map<number, number>();
  const running = new Set<number>();
  const lastReadyS = runs.reduce((last, { readyS }) => Math.max(last, readyS), -Infinity);
  const firstReadyS = runs.reduce((first, { readyS }) => Math.min(first, readyS), Infinity);
  let heldLeftS = heldWorkS(history, outliers);
  const gapS = GAP * (history.toS - Math.min(firstReadyS, history.toS));
  let [fullS, queuedMax, lastS] = [0, 0, -Infinity];
  let [stretchFromS, stretchToS, stretch] = [0, -Infinity, [0, 0] as readonly [number, number]];
  const look = (fromS: number, toS: number): void => {
    const { threads, isIdle, waiting, all } = counts;
    if (threads === 0 || (waiting === 0 && all[KIND.assigned] === 0)) return;
    if (!isIdle) {
      if (waiting > 0) fullS += toS - fromS;
      return;
    }
    queuedMax = Math.max(queuedMax, all[KIND.queued]!);
    const shares = counts.shares(fromS >= lastReadyS);
    // Beside a run that nothing keeps from threads, what is kept from them would have taken as long as it computes.
    if (all[KIND.free]! > 0) heldLeftS -= limitHeld(shares, heldLeftS, toS - fromS);
    const wallS = (toS - fromS) / threads;
    for (const [cause, amount] of shares) explainedS[cause] += wallS * amount;
    const [cause, amount] = shares.at(-1)!;
    if (cause !== 'serial') return;
    const [first = -1] = running;
    const prefix = runs[first]?.prefix ?? -1;
    serialByPrefix.set(prefix, (serialByPrefix.get(prefix) ?? 0) + wallS * amount);
    if (fromS - stretchToS > gapS) stretchFromS = fromS;
    stretchToS = toS;
    if (stretchToS - stretchFromS > stretch[1] - stretch[0]) stretch = [stretchFromS, stretchToS];
  };
  timelineOf(history, outliers).play((atS, kind, change, owner) => {
    if (atS > lastS) look(lastS, atS);
    lastS = atS;
    if (kind === KIND.running && change > 0) running.add(owner);
    else if (kind === KIND.running) running.delete(owner);
    const worker = kind >= KIND.present ? owner : (runs[owner]?.worker ?? -1);
    counts.change(kind, worker, change);
  });
  const { assignedMax } = counts;
  const serialPrefixes = [...serialByPrefix].toSorted(([, a], [, b]) => b - a);
  return { explainedS, fullS, assignedMax, queuedMax, stretch, serialPrefixes };
}

/** Gives idle threads from `restrictions` to the last cause, as far as they are more than so many thread seconds. Returns those that stay. */
function limitHeld(shares: readonly [IdleCause, number][], leftS: number, lastedS: number): number {
  const held = shares.find(([cause]) => cause === 'restrictions')!;
  const excess = Math.max(0, held[1] - leftS / lastedS);
  held[1] -= excess;
  shares.at(-1)![1] += excess;
  return held[1] * lastedS;
}

/** Causes that a worker's own tasks give, in the order in which its idle threads are given to them. */
const OWN = ['memory', 'transfers', 'handOut'] as const;

/** Figures of a worker that are summed: idle threads by {@link OWN}, other idle ones, those of paused workers, and tasks behind busy threads. */
const PART = { idle: 3, paused: 4, behind: 5, behindHeld: 6 } as const;
const PARTS = 7;

/** The counts of a moment, of all workers and of each. */
class Counts {
  /** Intervals that are open now, by kind. */
  readonly all = new Int32Array(KINDS);
  /** Threads of the workers that are there. */
  threads = 0;
  assignedMax = 0;
  private readonly byWorker: Int32Array;
  private readonly parts: Int32Array;
  private readonly sums = new Int32Array(PARTS);

  constructor(private readonly threadsOf: readonly number[]) {
    this.byWorker = new Int32Array(threadsOf.length * KINDS);
    this.parts = new Int32Array(threadsOf.length * PARTS);
  }

  get isIdle(): boolean {
    return this.sums.some((amount, index) => index <= PART.paused && amount > 0);
  }

  /** Tasks that could run and have no thread. */
  get waiting(): number {
    const { all } = this;
    return all[KIND.queued]! + all[KIND.queuedHeld]! + all[KIND.sent]! + all[KIND.sentHeld]!;
  }

  change(kind: Kind, worker: number, by: 1 | -1): void {
    this.all[kind]! += by;
    const threads = this.threadsOf[worker];
    // A queued task belongs to no worker yet.
    if (threads === undefined || kind <= KIND.queuedHeld) return;
    this.byWorker[worker * KINDS + kind]! += by;
    if (kind === KIND.present) this.threads += by * threads;
    if (kind === KIND.assigned && this.all[KIND.queued]! > 0) {
      const assigned = this.byWorker[worker * KINDS + kind]!;
      this.assignedMax = Math.max(this.assignedMax, assigned / threads);
    }
    this.divide(worker, threads);
  }

  /** The idle threads of this moment by cause; that of the runs comes last. */
  shares(isLast: boolean): readonly [IdleCause, number][] {
    const { all, sums, waiting } = this;
    const shares: [IdleCause, number][] = OWN.map((cause, index) => [cause, sums[index]!]);
    let left = sums[PART.idle]! + sums[PART.paused]!;
    const take = (cause: IdleCause, amount: number): void => {
      const taken = Math.min(left, amount);
      left -= taken;
      shares.push([cause, taken]);
    };
    take('memory', Math.min(sums[PART.paused]!, waiting));
    take('restrictions', all[KIND.queuedHeld]! + sums[PART.behindHeld]!);
    take('placement', sums[PART.behind]!);
    take('queued', all[KIND.queued]!);
    if (all[KIND.running] === 0) {
      // Nothing runs, so all wait for that which holds up the most.
      const most = shares.toSorted(([, a], [, b]) => b - a)[0]!;
      most[1] += left;
      return shares;
    }
    shares.push([this.causeOfRuns(isLast), left]);
    return shares;
  }

  private causeOfRuns(isLast: boolean): IdleCause {
    const { all } = this;
    if (all[KIND.straggling]! > 0) return 'straggler';
    if (all[KIND.slowed]! > 0) return 'slowWorker';
    return isLast && all[KIND.common] === all[KIND.running] ? 'tail' : 'serial';
  }

  /** Counts the idle threads of a worker anew. O(1) */
  private divide(worker: number, threads: number): void {
    const { parts, sums, byWorker } = this;
    const count = (kind: Kind): number => byWorker[worker * KINDS + kind]!;
    const free = Math.max(0, threads - count(KIND.running));
    const isPaused = count(KIND.paused) > 0;
    let idle = count(KIND.present) > 0 ? free : 0;
    const take = (amount: number): number => {
      const taken = Math.min(idle, amount);
      idle -= taken;
      return taken;
    };
    const waiting = count(KIND.sent) + count(KIND.sentHeld);
    const fetching = count(KIND.fetching);
    const own = [
      take(count(KIND.disk)),
      // Several tasks may wait for one transfer, which counts for the first of them.
      take(fetching > 0 ? fetching + waiting : 0),
      take((isPaused ? 0 : waiting) + count(KIND.reporting)),
    ];
    const behind = [KIND.sent, KIND.sentHeld].map((kind) => Math.max(0, count(kind) - free));
    [...own, isPaused ? 0 : idle, isPaused ? idle : 0, ...behind].forEach((amount, index) => {
      sums[index]! += amount - parts[PARTS * worker + index]!;
      parts[PARTS * worker + index] = amount;
    });
  }
}
