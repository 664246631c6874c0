import type { CostModel } from './cost-model.ts';
import type { Finite } from '../util/value-types.ts';
import { Tally } from '../util/collections/tally.ts';
import { SlotSharing } from './slot-sharing.ts';
import { StateCounts, TASK_STATE_NAMES } from './task-state-name.ts';

/** One measured action of a task: `compute`, `transfer`, `disk-read`, … in seconds. */
export interface ActionTiming {
  readonly action: string;
  readonly startS: Finite;
  readonly stopS: Finite;
}

/**
 * All tasks of one operation (`random`, `sum`), whatever collection they belong to.
 * It learns how long such a task takes.
 */
export class TaskPrefix {
  /** Exponentially weighted average of compute time in seconds; -1 while unknown. */
  durationAverageS: number;
  /** Longest time in seconds that a running task of this prefix was seen to take; -1 while unknown. */
  maxExecTimeS = -1;
  /** How often a worker died while a task of this prefix was processing there. */
  suspicious = 0;
  /** How many tasks ever entered each state. */
  readonly stateCounts = new StateCounts();
  readonly groups = new Set<TaskGroup>();
  /** How many such tasks count as one against the slots of a worker. */
  readonly sharing: SlotSharing;
  /** Tasks that are processing and have not seceded, over all workers. */
  processingCount = 0;
  /** What one more task of this prefix is expected to take, in seconds. Kept by the methods below. */
  durationEstimateS: number;

  constructor(
    readonly name: string,
    private readonly costs: CostModel,
  ) {
    this.sharing = new SlotSharing(costs.slotWorkS);
    this.durationAverageS = costs.defaultTaskDurationsS.get(name) ?? -1;
    this.durationEstimateS = this.estimate();
  }

  /** Tasks now in each state: the sum over the groups. */
  get states(): StateCounts {
    const sum = new StateCounts();
    for (const group of this.groups) {
      for (const state of TASK_STATE_NAMES) sum.change(state, group.states[state]);
    }
    return sum;
  }

  get nbytesTotal(): number {
    let sum = 0;
    for (const group of this.groups) sum += group.nbytesTotal;
    return sum;
  }

  /** A task computed for this long. Dask: the new value weighs one half. */
  addDuration(seconds: number): void {
    const duration = Math.max(0, seconds);
    this.durationAverageS =
      this.durationAverageS < 0 ? duration : 0.5 * duration + 0.5 * this.durationAverageS;
    this.durationEstimateS = this.estimate();
  }

  /**
   * A task has been running for this long and still is. An average that it exceeds twofold is
   * forgotten, because finished tasks alone would keep it too low for hours.
   */
  addExecTime(seconds: number): void {
    this.maxExecTimeS = Math.max(seconds, this.maxExecTimeS);
    if (seconds > 2 * this.durationAverageS) this.durationAverageS = -1;
    this.durationEstimateS = this.estimate();
  }

  /** Adds the counts of a prefix that is dropped, so that sums over all prefixes never fall. */
  absorb({ suspicious, stateCounts }: TaskPrefix): void {
    this.suspicious += suspicious;
    for (const state of TASK_STATE_NAMES) this.stateCounts.change(state, stateCounts[state]);
  }

  private estimate(): number {
    if (this.durationAverageS >= 0) return this.durationAverageS;
    if (this.maxExecTimeS > 0) return 2 * this.maxExecTimeS;
    return this.costs.unknownTaskDurationS;
  }
}

/** All tasks of one collection: the keys `('random-a1b2c3', i)` for every i. */
export class TaskGroup {
  /** Tasks now in each state. */
  readonly states = new StateCounts();
  /** Tasks ever added, forgotten ones included; it never shrinks while the group lives. */
  size = 0;
  /** Groups of the dependencies of this group's tasks. Written by {@link addDependency} alone. */
  readonly dependencies = new Set<TaskGroup>();
  /** Sum of the known sizes of the results ever computed and not forgotten, in bytes. */
  nbytesTotal = 0;
  /** Earliest start and latest stop of a computation, in seconds of the scheduler's clock; 0 = none. */
  startS = 0;
  stopS = 0;
  /** Seconds of computation, summed over the tasks. */
  durationS = 0;
  /** Seconds spent by any other action (`transfer`, `disk-read`, …), summed over the tasks. */
  readonly otherDurationsS = new Map<string, number>();
  private readonly typeTally = new Tally<string>();
  /** The tasks of a group depend on one other group as a rule. */
  private latestDependency: TaskGroup | undefined = undefined;

  constructor(
    readonly name: string,
    readonly prefix: TaskPrefix,
  ) {
    prefix.groups.add(this);
  }

  /** How many results there are of each type name. Builds a map. */
  get types(): ReadonlyMap<string, number> {
    return new Map(this.typeTally);
  }

  /** Whether no task of the group is on its way. */
  get done(): boolean {
    const { states } = this;
    return (
      states.waiting === 0 &&
      states['no-worker'] === 0 &&
      states.queued === 0 &&
      states.processing === 0
    );
  }

  /** A task of this group depends on one of that group. */
  addDependency(group: TaskGroup): void {
    if (group === this.latestDependency) return;
    this.latestDependency = group;
    this.dependencies.add(group);
  }

  /** There is a result of this type. */
  addType(type: string): void {
    this.typeTally.increment(type);
  }

  /** There are so many results of this type, which it has not met. */
  setTypeCount(type: string, count: number): void {
    this.typeTally.set(type, count);
  }

  addTiming({ action, startS, stopS }: ActionTiming): void {
    const duration = Math.max(0, stopS - startS);
    if (action !== 'compute') {
      const { otherDurationsS } = this;
      otherDurationsS.set(action, (otherDurationsS.get(action) ?? 0) + duration);
      return;
    }
    this.durationS += duration;
    if (this.stopS < stopS) this.stopS = stopS;
    if (this.startS === 0 || startS < this.startS) this.startS = startS;
  }
}
