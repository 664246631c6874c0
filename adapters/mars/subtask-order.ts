import type { Client, Future } from '../client/index.ts';
import type { HeldSubtask } from './held-subtask.ts';
import { type PriorityLabel, PriorityLabels, type PriorityTuple } from './priority-labels.ts';

/** Subtasks between two searches for those whose priority does not matter any more. */
const SWEEP_MIN = 1000;

/** The order of a session's subtasks: which number the scheduler has for each. */
export class SubtaskOrder {
  private readonly labels = new PriorityLabels();
  private labelled = 0;
  private sweepAt = SWEEP_MIN;

  constructor(
    private readonly client: Client,
    private readonly held: ReadonlyMap<string, HeldSubtask>,
  ) {}

  /**
   * Acquires a label for each tuple, calls `use` with the labels, and then sends the scheduler the
   * new priorities of all labels that have moved. When `use` throws, the labels are given back.
   */
  assign<T>(tuples: readonly PriorityTuple[], use: (labels: readonly PriorityLabel[]) => T): T {
    this.sweep();
    const { labels, moved } = this.labels.acquire(tuples);
    this.labelled += labels.length;
    try {
      return use(labels);
    } catch (error) {
      for (const label of labels) this.giveBack(label);
      throw error;
    } finally {
      this.tell(moved);
    }
  }

  /** The place of the subtask does not matter any more. */
  drop(held: HeldSubtask): void {
    if (held.label !== undefined) this.giveBack(held.label);
    held.label = undefined;
  }

  private giveBack(label: PriorityLabel): void {
    this.labels.release(label);
    this.labelled--;
  }

  private tell(moved: ReadonlySet<PriorityLabel>): void {
    if (moved.size === 0) return;
    const priorities = new Map<Future<unknown>, number>();
    for (const { future, label } of this.held.values()) {
      if (label !== undefined && moved.has(label)) priorities.set(future, label.value);
    }
    this.client.setPriority(priorities, { inputs: 'keep' });
  }

  /** What has ended needs no place in the order. O(subtasks), once for as many new ones. */
  private sweep(): void {
    if (this.labelled < this.sweepAt) return;
    for (const held of this.held.values()) if (held.future.done) this.drop(held);
    this.sweepAt = Math.max(SWEEP_MIN, 2 * this.labelled);
  }
}
