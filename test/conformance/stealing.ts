import type { Outbox } from '../../core/kernel/outbox.ts';
import type { WorkerState } from '../../core/state/task.ts';
import type { TaskView } from '../../core/api/index.ts';
import { Balancer } from '../../plugins/work-stealing/round.ts';
import { DaskStealing } from '../../policies/stealing/dask.ts';
import { runTrace } from './decide-traces.ts';
import type { CaseResult } from './report.ts';
import type { Trace, TraceStimulus } from './trace-format.ts';
import { TraceKernel } from './trace-kernel.ts';

/** What a test of Dask asserts about the placement in the end; one form or another. */
interface StealExpectation {
  readonly costsPerWorkerAfterAnyWorkerOrder?: readonly (readonly number[])[] | null;
  readonly recordedCostsPerWorker?: readonly (readonly number[])[];
  readonly recordedCountsInOriginalOrder?: readonly number[];
  readonly permutation?: readonly number[];
  readonly dependencyPlacement?: readonly (readonly string[])[];
  readonly taskPlacement?: readonly (readonly (readonly string[])[])[];
  readonly between?: Readonly<Record<string, readonly [number, number]>>;
  readonly counts?: Readonly<Record<string, number>>;
  readonly zero?: readonly string[];
  readonly atLeast?: Readonly<Record<string, number>>;
}

/** A trace of work stealing. */
export interface StealTrace extends Trace {
  readonly source: string;
  readonly testExpectation?: StealExpectation | null;
  readonly finalPlacement: Readonly<Record<string, readonly string[]>>;
}

/** Tests about which Dask itself says that an even result would be better. */
const EVEN_IS_BETTER = /multiple_to_replica|prefers_busier_with_dependency/;

/**
 * Replays what leads to the first round step by step; from there on only what comes of it is compared,
 * because Dask takes the tasks of one level in the order of a set. Requests are answered as in the
 * recording: the task that a worker would run first is running, the others are given away.
 */
export function runStealing(trace: StealTrace): CaseResult {
  const { id, stimuli } = trace;
  const firstRound = stimuli.findIndex(({ op }) => op === 'balance');
  const beginning = runTrace({
    ...trace,
    stimuli: stimuli.slice(0, firstRound),
    strictPrefix: Math.min(trace.strictPrefix, firstRound),
    addressTieBreakPrefix: Math.min(trace.addressTieBreakPrefix, firstRound),
  });
  if (beginning.failure !== undefined) return beginning;
  try {
    const replay = new StealReplay(trace);
    for (const stimulus of stimuli) replay.apply(stimulus);
    replay.end();
    const failure = difference(trace, replay.workers);
    return failure === undefined ? { id } : { id, failure };
  } catch (error) {
    return { id, failure: `threw ${(error as Error).message}` };
  }
}

/** An answer of the recording; without a key, one that it leaves out. */
interface Answer {
  readonly key?: string;
  readonly state?: string | null;
  readonly stale?: boolean;
}

interface Asked {
  readonly key: string;
  readonly runId: number;
  readonly worker: WorkerState;
}

class StealReplay {
  private readonly trace: TraceKernel;
  private readonly balancer: Balancer;
  private asked: Asked[] = [];
  /** Keys that are running when the first round begins. */
  private running: Set<string> | undefined;
  private readonly isFirstRunning: boolean;
  private readonly areAllAnswered: boolean;
  private count = 0;

  constructor({ config, stimuli, expected }: StealTrace) {
    this.trace = new TraceKernel(config);
    const { kernel, nowMs } = this.trace;
    // The order in which recordings go through a set.
    const policy = Object.assign(new DaskStealing(), { order: byKey });
    const inCharge = { name: 'dask', policy, failed: refuse, answered: () => undefined };
    this.balancer = new Balancer({
      cluster: () => kernel.cluster,
      policy: () => inCharge,
      // What Dask 2022.12.1 never steals.
      spared: new Set(['split-shuffle']),
      enact: (proposals, victims) => {
        const before = kernel.cluster.stealsInFlight;
        const stimulusId = `steal-${++this.count}`;
        this.collect(kernel.handle({ op: 'steal-tasks', proposals, victims, stimulusId }, nowMs));
        const grown = kernel.cluster.stealsInFlight - before;
        if (grown !== proposals.length)
          throw new Error(`${proposals.length} proposals, ${grown} in flight`);
      },
    });
    const answers = stimuli.filter((stimulus) => stimulus.op === 'stealResponse');
    const requests = expected.flatMap(
      (step) => (step as { stealRequests?: readonly unknown[] }).stealRequests ?? [],
    );
    this.isFirstRunning = answers.some(({ state }) => state === 'executing');
    this.areAllAnswered = answers.filter(({ stale }) => stale !== true).length === requests.length;
  }

  get workers(): ReadonlyMap<string, WorkerState> {
    return this.trace.kernel.cluster.workers;
  }

  apply(stimulus: TraceStimulus): void {
    if (stimulus.op === 'balance') this.balance();
    else if (stimulus.op === 'stealResponse') this.answer(stimulus);
    else this.trace.apply(stimulus);
  }

  end(): void {
    while (this.areAllAnswered && this.asked.length > 0) this.answer({});
  }

  private balance(): void {
    this.end();
    this.running ??= this.firstTasks();
    this.balancer.runOnce();
  }

  /** What the recording answers for; when that was not asked for, what was asked for first. */
  private answer({ key: recorded, state, stale: isStale = false }: Answer): void {
    const index = this.asked.findIndex((asked) => asked.key === recorded);
    const first = this.asked[Math.max(0, index)];
    if (first === undefined) return;
    if (!isStale) this.asked.splice(Math.max(0, index), 1);
    const { kernel, nowMs } = this.trace;
    const { key, runId, worker } = first;
    const assumed = this.running?.has(key) === true ? 'executing' : 'ready';
    this.collect(
      kernel.handle(
        {
          op: 'steal-response',
          worker: worker.address,
          keys: [key],
          runIds: [isStale ? runId - 1 : runId],
          states: [index < 0 || state === undefined ? assumed : (state ?? 'released')],
          stimulusId: `answer-${++this.count}`,
        },
        nowMs,
      ),
    );
  }

  private firstTasks(): Set<string> {
    const keys = new Set<string>();
    if (!this.isFirstRunning) return keys;
    for (const { processing } of this.workers.values()) {
      const first = [...processing].reduce<
        (typeof processing extends Iterable<infer T> ? T : never) | undefined
      >((best, task) => (best === undefined || isSooner(task, best) ? task : best), undefined);
      if (first !== undefined) keys.add(first.key);
    }
    return keys;
  }

  private collect({ toWorkers }: Outbox): void {
    for (const { worker, message } of toWorkers) {
      if (message.op !== 'steal-request') continue;
      message.keys.forEach((key, index) => {
        this.asked.push({ key, runId: message.runIds[index]!, worker });
      });
    }
  }
}

function refuse(what: string, cause?: unknown): never {
  throw new Error(`the policy ${what}`, { cause });
}

function byKey(a: TaskView, b: TaskView): number {
  return a.key < b.key ? -1 : 1;
}

interface Prioritised {
  readonly negatedUserPriority: number;
  readonly generation: number;
  readonly rank: number;
}

function isSooner(a: Prioritised, b: Prioritised): boolean {
  const user = a.negatedUserPriority - b.negatedUserPriority;
  if (user !== 0) return user < 0;
  const generation = a.generation - b.generation;
  return generation !== 0 ? generation < 0 : a.rank < b.rank;
}

function difference(
  trace: StealTrace,
  workers: ReadonlyMap<string, WorkerState>,
): string | undefined {
  const counts = new Map(
    [...workers].map(([address, { processing }]) => [address, processing.size]),
  );
  const costs = [...workers.values()].map(({ processing }) =>
    [...processing].map(({ prefix }) => Number(prefix.name)),
  );
  const { testExpectation: expectation, finalPlacement } = trace;
  const recorded = Object.values(finalPlacement).map((keys) => keys.length);
  if (expectation === null || expectation === undefined) {
    return unlike(
      'tasks on workers',
      [...counts.values()].sort(ascending),
      recorded.sort(ascending),
    );
  }
  return (
    differentCosts(expectation, costs) ??
    differentCounts(trace, expectation, counts) ??
    outOfBounds(expectation, counts)
  );
}

function differentCosts(
  { costsPerWorkerAfterAnyWorkerOrder: costs, recordedCostsPerWorker }: StealExpectation,
  actual: readonly number[][],
): string | undefined {
  if (costs !== undefined && costs !== null)
    return unlike('costs', canonical(actual), canonical(costs));
  if (recordedCostsPerWorker === undefined) return undefined;
  const sizes = (lists: readonly (readonly number[])[]): number[] =>
    lists.map((list) => list.length).sort(ascending);
  return unlike('tasks on workers', sizes(actual), sizes(recordedCostsPerWorker));
}

/** Workers that began alike may have changed their parts. */
function differentCounts(
  { source }: StealTrace,
  expectation: StealExpectation,
  counts: ReadonlyMap<string, number>,
): string | undefined {
  const { recordedCountsInOriginalOrder: recorded, permutation = [] } = expectation;
  if (recorded === undefined) return undefined;
  const actual = [...counts.values()];
  const isEven = Math.max(...actual) - Math.min(...actual) <= 1;
  if (isEven && EVEN_IS_BETTER.test(source)) return undefined;
  const groups = new Map<string, { actual: number[]; expected: number[] }>();
  actual.forEach((count, index) => {
    const { dependencyPlacement, taskPlacement } = expectation;
    const beginning = JSON.stringify([dependencyPlacement?.[index], taskPlacement?.[index]]);
    const group = groups.get(beginning) ?? { actual: [], expected: [] };
    groups.set(beginning, group);
    group.actual.push(count);
    group.expected.push(recorded[permutation[index] ?? index] ?? -1);
  });
  for (const group of groups.values()) {
    const found = unlike(
      'tasks on workers',
      group.actual.sort(ascending),
      group.expected.sort(ascending),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

function outOfBounds(
  { between = {}, counts = {}, zero = [], atLeast = {} }: StealExpectation,
  actual: ReadonlyMap<string, number>,
): string | undefined {
  const bounds: [string, number, number][] = [
    ...Object.entries(between).map(
      ([address, [low, high]]) => [address, low, high] as [string, number, number],
    ),
    ...Object.entries(counts).map(
      ([address, count]) => [address, count, count] as [string, number, number],
    ),
    ...zero.map((address) => [address, 0, 0] as [string, number, number]),
    ...Object.entries(atLeast).map(
      ([address, low]) => [address, low, Infinity] as [string, number, number],
    ),
  ];
  for (const [address, low, high] of bounds) {
    const count = actual.get(address) ?? 0;
    if (count < low || count > high) return `${address} has ${count} tasks, not ${low} to ${high}`;
  }
  return undefined;
}

function canonical(lists: readonly (readonly number[])[]): number[][] {
  return lists
    .map((list) => list.toSorted((a, b) => b - a))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function unlike(what: string, actual: unknown, expected: unknown): string | undefined {
  const [ours, theirs] = [JSON.stringify(actual), JSON.stringify(expected)];
  return ours === theirs ? undefined : `${what}: ${ours} instead of ${theirs}`;
}

function ascending(a: number, b: number): number {
  return a - b;
}
