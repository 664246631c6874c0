import type { TaskState } from '../../state/task.ts';

/** Guesses the next number of a row from the last two. */
class Row {
  private last = 0;
  private stride = 0;
  private isSteady = false;

  /** The next value if the sequence continues; -1 when it was not steady lately. */
  get next(): number {
    return this.isSteady ? this.last + this.stride : -1;
  }

  /** Continues the sequence after this value instead of the last one. */
  resumeAfter(last: number): void {
    this.last = last;
  }

  add(number: number): void {
    const stride = number - this.last;
    this.isSteady = stride === this.stride;
    this.stride = stride;
    this.last = number;
  }
}

/**
 * Guesses which task of a graph a dependency is, without looking its key up in a table of a million.
 *
 * Graphs are made by loops: the dependencies of one task lie evenly spaced in the graph, and so do the
 * first dependencies of tasks that follow each other. A guess costs one comparison of keys, and is made only
 * where the one before was right.
 */
export class DependencyGuess {
  private readonly firsts = new Row();
  private readonly others = new Row();

  /** @param states - the tasks of the graph by index */
  constructor(private readonly states: readonly TaskState[]) {}

  /**
   * The task of the graph with that key if a guess is right, else undefined.
   *
   * @param before - index of the dependency before it in the list of the same task, if it is not the first
   */
  find(key: string, before: number | undefined): TaskState | undefined {
    if (before !== undefined) this.others.resumeAfter(before);
    const { next } = before === undefined ? this.firsts : this.others;
    if (next < 0 || next >= this.states.length) return undefined;
    const task = this.states[next];
    return task?.key === key && task.state !== 'forgotten' ? task : undefined;
  }

  /** The dependency after `before` turned out to be that one. */
  learn(index: number, before: number | undefined): void {
    (before === undefined ? this.firsts : this.others).add(index);
  }
}
