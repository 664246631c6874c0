import { readFileSync } from 'node:fs';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { GraphTask } from '../../core/messages/stimulus.ts';
import type { Unnamed } from '../kit/env.ts';
import { makePorts } from '../kit/ports.ts';

/** What one step cost: how long the kernel was blocked at most, and in how many stimuli it was done. */
export interface StepCost {
  readonly step: string;
  /** CPU time of the longest stimulus: other processes do not count. See {@link busyMs}. */
  readonly longestMs: number;
  readonly stimuli: number;
}

const SLICE = 1000;
const WORKERS = 4;
const ROOT = 'root';

/**
 * One task with very many dependents, to which everything is done that a client or a worker can do. Slices are
 * those of a scheduler's host.
 */
class ManyDependents {
  readonly costs: StepCost[] = [];
  private readonly kernel: SchedulerKernel;
  private stimuli = 0;
  private nowMs = 0;
  private readonly keys: readonly string[];

  constructor(count: number) {
    this.kernel = new SchedulerKernel({ sliceTransitions: SLICE }, makePorts(), 0);
    this.keys = Array.from({ length: count }, (_, index) => `d-${index}`);
    for (let rank = 0; rank < WORKERS; rank++) this.addWorker(rank);
    this.handle({ op: 'register-client', client: 'c' });
  }

  /** The root fails, is retried, finishes; then another way to end. */
  run(end: 'cancel' | 'release' | 'leave'): void {
    this.submit();
    this.step('fail', this.report('task-erred'));
    this.step('retry', { op: 'retry', client: 'c', keys: [ROOT] });
    if (end === 'release') this.step('finish', this.report('task-finished'));
    if (end === 'cancel')
      this.step('cancel', { op: 'cancel-keys', client: 'c', keys: [ROOT], force: false });
    if (end === 'leave') this.step('leave', { op: 'remove-client', client: 'c' });
    else this.step('release', this.releases());
    const { size } = this.kernel.cluster.tasks;
    if (size > 0) throw new Error(`${size} tasks are left after ${end}`);
  }

  private submit(): void {
    const of = (key: string, dependencies: string[]): GraphTask => ({
      key,
      runSpec: null,
      dependencies,
    });
    const tasks = [of(ROOT, []), ...this.keys.map((key) => of(key, [ROOT]))];
    const keys = [ROOT, ...this.keys];
    this.step('submit', { op: 'update-graph', client: 'c', tasks, keys });
  }

  private step(step: string, stimulus: Unnamed): void {
    const first = this.stimuli;
    let longestMs = 0;
    const timed = (each: Unnamed): void => {
      const before = busyMs();
      this.handle(each);
      longestMs = Math.max(longestMs, busyMs() - before);
    };
    timed(stimulus);
    while (this.kernel.isUnsettled) timed({ op: 'continue' });
    this.costs.push({ step, longestMs, stimuli: this.stimuli - first });
  }

  private handle(stimulus: Unnamed): void {
    const stimulusId = `${stimulus.op}-${++this.stimuli}`;
    this.kernel.handle({ stimulusId, ...stimulus }, (this.nowMs += 0.01));
  }

  private report(op: 'task-erred' | 'task-finished'): Unnamed {
    const root = this.kernel.cluster.tasks.get(ROOT)!;
    const common = { key: ROOT, worker: root.processingOn!.address, runId: root.runId };
    return op === 'task-erred'
      ? {
          ...common,
          op,
          failure: { exception: null, exceptionText: 'boom', traceback: null, tracebackText: '' },
        }
      : { ...common, op, nbytes: 1, type: 'number', timings: [] };
  }

  private releases(): Unnamed {
    return { op: 'client-releases-keys', client: 'c', keys: [ROOT, ...this.keys] };
  }

  private addWorker(rank: number): void {
    this.handle({
      op: 'register-worker',
      identity: {
        address: `tcp://w${rank}:1`,
        serverId: `w${rank}`,
        name: `w${rank}`,
        host: `w${rank}`,
        threadCount: 4,
        memoryLimitBytes: 0,
        resources: {},
      },
      status: 'running',
    });
  }
}

/**
 * CPU time of this thread, with its share of garbage collections. Where the system does not say it, that of the
 * process, whose other threads collect garbage at the same time.
 */
function busyMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

/** Cancels, releases, fails and retries a task with so many dependents. */
export function measureDependents(count: number): readonly StepCost[] {
  return (['cancel', 'release', 'leave'] as const).flatMap((end) => {
    const many = new ManyDependents(count);
    many.run(end);
    return many.costs.map((cost) => ({ ...cost, step: `${cost.step} (${end})` }));
  });
}

/** Prints what {@link measureDependents} finds. */
export function printDependents(count: number): void {
  for (const { step, longestMs, stimuli } of measureDependents(count)) {
    const ms = longestMs.toFixed(1).padStart(8);
    process.stdout.write(`${step.padEnd(20)} ${ms} ms at most, ${stimuli} stimuli\n`);
  }
}
