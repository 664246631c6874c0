import type { TaskState } from '../state/task.ts';

/** Depths beyond share the rows of lesser ones: a wrong guess costs little. A power of two. */
const DEPTHS = 64;

/** Guesses the next number of a row from the last two. */
class Row {
  private last = 0;
  private stride = 0;
  private isSteady = false;

  /** What comes next if the row goes on; -1 when it was not steady lately. */
  get next(): number {
    return this.isSteady ? this.last + this.stride : -1;
  }

  /** The row goes on after another number than that which came last. */
  resumeAfter(last: number): void {
    this.last = last;
  }

  /** Returns whether it came as expected. */
  add(number: number): boolean {
    const stride = number - this.last;
    this.isSteady = stride === this.stride;
    this.stride = stride;
    this.last = number;
    return this.isSteady;
  }
}

/**
 * Guesses which task of a graph a dependency is, without looking its key up in a table of a million.
 *
 * Graphs are made by loops: the dependencies of one task lie evenly spaced in the graph, and so do the
 * first dependencies of tasks that are walked through one after the other, or where they do not those of
 * tasks at the same depth of the walk. A guess costs one comparison of keys, and is made only where the
 * one before was right.
 */
export class DependencyGuess {
  private readonly firsts = new Row();
  /** By the low bits of the depth. */
  private readonly firstsAtDepth = Array.from({ length: DEPTHS }, () => new Row());
  private readonly others = new Row();

  /** @param states - the tasks of the graph by index */
  constructor(private readonly states: readonly TaskState[]) {}

  /**
   * The task of the graph with that key if a guess is right, else undefined.
   *
   * @param before - index of the dependency before it in the list of the same task, if it is not the first
   * @param depth - how many tasks the walk has gone down to the one that names it
   */
  find(key: string, before: number | undefined, depth: number): TaskState | undefined {
    if (before !== undefined) this.others.resumeAfter(before);
    const { next } = before === undefined ? this.firsts : this.others;
    if (next >= 0) return this.at(next, key);
    return before === undefined ? this.at(this.firstsAt(depth).next, key) : undefined;
  }

  /** The dependency after `before` turned out to be that one. */
  learn(index: number, before: number | undefined, depth: number): void {
    const row = before === undefined ? this.firsts : this.others;
    if (!row.add(index) && before === undefined) this.firstsAt(depth).add(index);
  }

  private firstsAt(depth: number): Row {
    return this.firstsAtDepth[depth & (DEPTHS - 1)] as Row;
  }

  private at(index: number, key: string): TaskState | undefined {
    if (index < 0 || index >= this.states.length) return undefined;
    const task = this.states[index];
    return task?.key === key && task.state !== 'forgotten' ? task : undefined;
  }
}
