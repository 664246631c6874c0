import {
  type Clock,
  type Logger,
  type TaskView,
  type Timer,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { checkCall, type Rules, type Schema, wholeNumber } from '../../core/shared/schema.ts';
import { isReported } from '../../core/util/failure-count.ts';
import { AdaptivePlan } from '../../policies/scaling/adaptive.ts';
import type { ClusterWorker } from './lifetime.ts';

/** The options of adaptation. */
export interface AdaptOptions {
  /** Workers that are always there. Default 0. */
  readonly minimum?: number;
  /** Workers that there are at most. Default: no limit. */
  readonly maximum?: number;
  /** Milliseconds between two looks. Default 1000. */
  readonly intervalMs?: number;
  /**
   * The target time in milliseconds within which the workers should finish the present work.
   * Default 5000.
   */
  readonly targetDurationMs?: number;
  /** A worker is closed after it was closable in this many consecutive checks. Default 3. */
  readonly waitCount?: number;
}

/** A cluster that adapts: it can start workers, and have its scheduler retire them. */
export interface AdaptiveCluster {
  /** Workers that are there or are being started. */
  readonly workerCount: number;
  /** Workers that the present work could use. */
  target(targetDurationMs: number): number;
  /** Names of the most dispensable workers, so that `leave` workers remain. */
  closable(leave: number): readonly string[];
  start(count: number): Promise<void>;
  /** Moves their data away and closes them. */
  retire(names: readonly string[]): Promise<void>;
}

/**
 * Starts workers when there is more work than they can do in time, and retires them when there is
 * less. One step at a time: the next look comes when the last step is done. What fails is logged, at
 * its 1st, 2nd, 4th, 8th … time, and tried again.
 */
export class Adaptive {
  private readonly options: Required<AdaptOptions>;
  private readonly plan: AdaptivePlan;
  private timer: Timer | undefined;
  private step: Promise<void> = Promise.resolve();
  private failures = 0;
  private isStopped = false;

  /** @throws YardmasterError `ERR_CONFIG` naming the option */
  constructor(
    private readonly cluster: AdaptiveCluster,
    private readonly clock: Clock,
    private readonly log: Logger,
    options: AdaptOptions,
  ) {
    this.options = checkedOptions(options);
    this.plan = new AdaptivePlan(this.options);
    this.schedule();
  }

  /** No more looks. Resolves when the last step is done. */
  stop(): Promise<void> {
    this.isStopped = true;
    this.timer?.cancel();
    return this.step;
  }

  private schedule(): void {
    if (this.isStopped) return;
    this.timer = this.clock.setTimer(this.options.intervalMs, () => {
      this.step = this.look().then(() => this.schedule());
    });
  }

  /** Never rejects. */
  private async look(): Promise<void> {
    const { cluster, options } = this;
    try {
      const target = cluster.target(options.targetDurationMs);
      const next = this.plan.next(target, cluster.workerCount, (leave) => cluster.closable(leave));
      if (next.kind === 'up') await cluster.start(next.count);
      else if (next.kind === 'down') await cluster.retire(next.names);
    } catch (error) {
      if (this.isStopped) return; // The cluster closes.
      this.failures++;
      if (!isReported(this.failures)) return;
      const { message } = error as Error;
      const times = this.failures === 1 ? '' : ` (failure ${this.failures})`;
      this.log.warn({ err: error }, `the cluster could not adapt to its work: ${message}${times}`);
    }
  }
}

const TIME: Schema = { type: 'number', exclusiveMinimum: 0, maximum: Number.MAX_VALUE };
const ADAPT_RULES: Rules<AdaptOptions> = {
  minimum: { ...wholeNumber(0), default: 0 },
  maximum: { ...wholeNumber(1), infinite: true, default: Infinity },
  intervalMs: { ...TIME, default: 1000 },
  targetDurationMs: { ...TIME, default: 5000 },
  waitCount: { ...wholeNumber(1), default: 3 },
};

function checkedOptions(options: AdaptOptions): Required<AdaptOptions> {
  const checked = checkCall('adapt', options, ADAPT_RULES) as Required<AdaptOptions>;
  const { minimum, maximum } = checked;
  if (maximum >= minimum) return checked;
  const message = `adapt: maximum must be at least the minimum, ${minimum} (got ${maximum})`;
  throw new YardmasterError('ERR_CONFIG', message, { call: 'adapt', option: 'maximum' });
}

/** The answer of the command `amm.retireWorkers` about workers that stay. */
interface Retirement {
  /** By address, or by name when the scheduler does not know it. */
  readonly kept: readonly { readonly worker: string; readonly reason: string }[];
}

/** A worker that was not closed, because what it holds would be lost. */
export interface KeptWorker {
  readonly worker: string;
  readonly reason: string;
}

/** The workers to close, the youngest first; those that hold an actor come last. */
export function surplusOf(
  workers: readonly ClusterWorker[],
  count: number,
  { cluster }: Scheduler,
): readonly ClusterWorker[] {
  const busy = new Set<string>();
  for (const { name, actors } of cluster.workers.values()) if (actors.size > 0) busy.add(name);
  const youngestFirst = workers.toReversed();
  const order = [
    ...youngestFirst.filter(({ name }) => !busy.has(name)),
    ...youngestFirst.filter(({ name }) => busy.has(name)),
  ];
  return order.slice(0, Math.max(0, workers.length - count));
}

/**
 * Has the scheduler move what only these workers hold to others, and closes them. A worker whose results
 * no other one takes is closed as well when they can all be computed again.
 *
 * @returns the workers that hold an actor, or data that cannot be computed again and that no other worker
 *   takes. They work on.
 */
export async function retireSurplus(
  surplus: readonly ClusterWorker[],
  scheduler: Scheduler,
): Promise<readonly KeptWorker[]> {
  if (surplus.length === 0) return [];
  const names = surplus.map(({ name }) => name);
  const { kept } = (await scheduler.command('amm.retireWorkers', { names })) as Retirement;
  const staying = kept.flatMap(({ worker: address }): KeptWorker[] => {
    const worker = scheduler.cluster.workers.get(address);
    const reason = worker && reasonToKeep(worker, new Set(names));
    return worker === undefined || reason === undefined ? [] : [{ worker: worker.name, reason }];
  });
  const isStaying = (name: string): boolean => staying.some(({ worker }) => worker === name);
  const leaving = surplus.filter(({ name }) => !isStaying(name));
  await Promise.all(leaving.map((worker) => worker.close()));
  await Promise.all(leaving.map(({ ended }) => ended));
  return staying;
}

/** O(results of the worker, and of what they are made of). */
function reasonToKeep(worker: WorkerView, leaving: ReadonlySet<string>): string | undefined {
  if (worker.actors.size > 0) return 'holds an actor';
  const seen = new Set<TaskView>();
  for (const task of worker.hasWhat) {
    const hasOtherCopy = task.whoHas.items.some(({ name }) => !leaving.has(name));
    if (hasOtherCopy || isComputable(task, seen)) continue;
    return `holds data that cannot be computed again ("${task.key}"), and no other worker takes it`;
  }
  return undefined;
}

/**
 * True when a task can be computed again when its result is lost: inputs that are in memory are there, or are
 * looked at themselves.
 * @param seen - tasks that can be computed
 */
function isComputable(task: TaskView, seen: Set<TaskView>): boolean {
  const pending = [task];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (next.runSpec === undefined) return false;
    for (const input of next.dependencies) if (input.state !== 'memory') pending.push(input);
  }
  return true;
}

/** That a cluster has more workers than it was asked to have. */
export function keptError(kept: readonly KeptWorker[], count: number): YardmasterError {
  const each = kept.map(({ worker, reason }) => `${worker} ${reason}`).join('; ');
  return new YardmasterError(
    'ERR_RETIRE',
    `the cluster was not scaled to ${count}: worker ${each}; release that first, or leave more workers`,
    { count, kept },
  );
}
