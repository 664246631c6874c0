import { isReported } from '../../core/util/failure-count.ts';
import { type Clock, type Logger, type Timer, YardmasterError } from '../../core/api/index.ts';
import { ANY, checkCallOptions, type OptionRules } from '../../core/shared/call-options.ts';
import { AdaptivePlan } from '../../policies/scaling/adaptive-plan.ts';

/** How a cluster adapts to its work. */
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

/** What adapts: a cluster that can start workers, and have its scheduler retire them. */
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

const ADAPT_RULES: OptionRules<AdaptOptions> = {
  minimum: ANY,
  maximum: ANY,
  intervalMs: ANY,
  targetDurationMs: ANY,
  waitCount: ANY,
};

function checkedOptions(options: AdaptOptions): Required<AdaptOptions> {
  checkCallOptions('adapt', options, ADAPT_RULES);
  const { minimum = 0, maximum = Infinity, waitCount = 3 } = options;
  const { intervalMs = 1000, targetDurationMs = 5000 } = options;
  if (!Number.isInteger(minimum) || minimum < 0) {
    refuse(`minimum must be a whole number, at least 0, got ${minimum}`);
  }
  if (!(Number.isInteger(maximum) || maximum === Infinity) || maximum < minimum || maximum < 1) {
    refuse(
      `maximum must be a whole number, at least 1 and the minimum, or Infinity, got ${maximum}`,
    );
  }
  if (!Number.isInteger(waitCount) || waitCount < 1) {
    refuse(`waitCount must be a whole number, at least 1, got ${waitCount}`);
  }
  for (const [name, ms] of Object.entries({ intervalMs, targetDurationMs })) {
    if (!(ms > 0 && Number.isFinite(ms))) refuse(`${name} must be above 0 and finite, got ${ms}`);
  }
  return { minimum, maximum, intervalMs, targetDurationMs, waitCount };
}

function refuse(what: string): never {
  throw new YardmasterError('ERR_CONFIG', `adapt: ${what}`, { option: 'adapt' });
}
