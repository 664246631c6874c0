import type { GraphPart, GraphTask, SubmittedGraph } from '../../messages/stimulus.ts';

/** A graph of which all parts are together. */
interface Assembled extends Pick<SubmittedGraph, 'tasks' | 'keys'> {
  /** Whether none is missing, as happens when a connection breaks between two parts. */
  readonly isWhole: boolean;
}

/** The parts of a large graph that a client has sent so far. */
export class GraphParts {
  private tasks: GraphTask[] = [];
  private keys: string[] = [];
  private count = 0;

  /** Tasks of the parts that have come so far. */
  get taskCount(): number {
    return this.tasks.length;
  }

  add({ tasks, keys }: Pick<GraphPart, 'tasks' | 'keys'>): void {
    for (const task of tasks) this.tasks.push(task);
    for (const key of keys) this.keys.push(key);
    this.count++;
  }

  /** The last part has come. Returns the tasks and keys of all, in their order. */
  end({ tasks, keys, parts = 0 }: Pick<SubmittedGraph, 'tasks' | 'keys' | 'parts'>): Assembled {
    const isWhole = parts === this.count;
    if (this.count === 0) return { tasks, keys, isWhole };
    this.add({ tasks, keys });
    const all = { tasks: this.tasks, keys: this.keys, isWhole };
    this.tasks = [];
    this.keys = [];
    this.count = 0;
    return all;
  }
}
