import { NO_TASKS, type TaskState } from '../../state/task.ts';
import type { GraphPlan } from './graph-walk.ts';

/** Rows up to this length are searched for duplicates; in longer ones each index leaves a mark. */
const SEARCHED_MAX = 4;

/** The dependencies of the tasks of a planned graph as lists to keep, each task once. */
export class DependencyRows {
  /** Reused: what it holds beyond the present row is of no meaning. */
  private readonly row: TaskState[] = [];
  /** By index in the graph: one more than the index of the last long row that names the task. */
  private marks: Int32Array | undefined = undefined;

  constructor(private readonly plan: GraphPlan) {}

  /**
   * A list of exactly the length that it needs. Empty lists, and those of tasks that need the same single
   * result, are shared.
   */
  of(index: number): TaskState[] {
    const { plan, row } = this;
    const start = plan.offsets[index] as number;
    const count = (plan.offsets[index + 1] as number) - start;
    if (count === 1) return aloneIn(plan.dependencyAt(start));
    for (let n = 0; n < count; n++) {
      const task = plan.dependencyAt(start + n);
      if (n === row.length) row.push(task);
      else row[n] = task;
    }
    const hasTwins = count > SEARCHED_MAX ? this.isMarked(index) : isTwice(row, count);
    return hasTwins ? [...new Set(row.slice(0, count))] : copyOf(row, count);
  }

  /**
   * Whether a task of the graph is in this row twice. Tasks outside of the graph are not
   * distinguished.
   */
  private isMarked(index: number): boolean {
    const { targets, offsets, states } = this.plan;
    const marks = (this.marks ??= new Int32Array(states.length));
    const end = offsets[index + 1] as number;
    let outside = 0;
    for (let place = offsets[index] as number; place < end; place++) {
      const target = targets[place] as number;
      if (target < 0) {
        if (++outside > 1) return true;
      } else if (marks[target] === index + 1) return true;
      else marks[target] = index + 1;
    }
    return false;
  }
}

function isTwice(row: readonly TaskState[], count: number): boolean {
  for (let n = 1; n < count; n++) {
    for (let earlier = 0; earlier < n; earlier++) if (row[earlier] === row[n]) return true;
  }
  return false;
}

/** The list of the first task that needs this result alone will do for the others. */
function aloneIn(dependency: TaskState): TaskState[] {
  if (dependency.dependentCount === 0) return [dependency];
  const first = dependency.dependentsWithForgotten[0];
  return first?.dependencies.length === 1 ? first.dependencies : [dependency];
}

/** Written out for the lengths that are the rule, which takes no call. */
function copyOf(row: readonly TaskState[], count: number): TaskState[] {
  switch (count) {
    case 0:
      return NO_TASKS;
    case 2:
      return [row[0] as TaskState, row[1] as TaskState];
    case 3:
      return [row[0] as TaskState, row[1] as TaskState, row[2] as TaskState];
    default:
      return row.slice(0, count);
  }
}
