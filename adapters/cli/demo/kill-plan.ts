import { momentsOf, randomFrom } from './chaos.ts';

/** One kill of a plan. */
export interface PlannedKill {
  /** Finished tasks after which it happens. */
  readonly after: number;
  /** Milliseconds later: the scheduler may be reading its journal then, or waiting for workers. */
  readonly delayMs: number;
  /** Index of the worker; undefined: the scheduler. */
  readonly worker: number | undefined;
}

/** What to kill, and how often. */
export interface KillPlanOptions {
  readonly seed: number;
  readonly taskCount: number;
  readonly schedulerKills: number;
  readonly workerKills: number;
  readonly workers: number;
}

const DELAY_MAX_MS = 150;

/** Kills in their order. The same options give the same plan. */
export function killPlan(options: KillPlanOptions): readonly PlannedKill[] {
  const { seed, taskCount, schedulerKills, workerKills, workers } = options;
  const random = randomFrom(seed);
  const kill = (share: number, worker: number | undefined): PlannedKill => ({
    after: Math.ceil(taskCount * share),
    delayMs: Math.round(DELAY_MAX_MS * random()),
    worker,
  });
  const ofScheduler = momentsOf(schedulerKills, random).map((share) => kill(share, undefined));
  const ofWorkers = momentsOf(workerKills, random).map((share) =>
    kill(share, Math.floor(workers * random())),
  );
  return [...ofScheduler, ...ofWorkers].sort((a, b) => a.after - b.after);
}

/** Counts finished tasks, and wakes what waits for a number of them. */
export class DoneCount {
  private count = 0;
  private readonly waiting: { readonly least: number; readonly wake: () => void }[] = [];

  get value(): number {
    return this.count;
  }

  add(): void {
    this.count++;
    for (const { least, wake } of this.waiting) if (this.count >= least) wake();
  }

  /** Resolves when so many tasks are finished. */
  reaches(least: number): Promise<void> {
    if (this.count >= least) return Promise.resolve();
    return new Promise((wake) => this.waiting.push({ least, wake }));
  }
}
