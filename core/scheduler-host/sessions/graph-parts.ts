import { approximateBytes } from '../../util/approximate-bytes.ts';
import type { GraphPart, GraphTask, SubmittedGraph } from '../../messages/stimulus.ts';

/** A graph of which all parts are together. */
interface Assembled extends Pick<SubmittedGraph, 'tasks' | 'keys'> {
  /** Why it cannot be computed: a part is missing, or it was too large. Then only the keys count. */
  readonly refusal?: string;
}

/** Tasks that the parts of a graph may have together. */
const TASKS_MAX = 10_000_000;

/** The parts of a large graph that a client has sent so far. */
export class GraphParts {
  private tasks: GraphTask[] = [];
  private keys: string[] = [];
  private count = 0;
  private nbytes = 0;
  private isTooLarge = false;

  /** @param bytesMax - what the parts of one graph may occupy */
  constructor(private readonly bytesMax: number) {}

  /** Returns the keys that are refused, because with this part the graph is too large. O(values of the part). */
  add({ tasks, keys }: Pick<GraphPart, 'tasks' | 'keys'>): readonly string[] {
    this.count++;
    if (this.isTooLarge) return keys;
    this.nbytes += approximateBytes([tasks, keys], this.bytesMax);
    for (const key of keys) this.keys.push(key);
    if (this.nbytes > this.bytesMax || this.tasks.length + tasks.length > TASKS_MAX) {
      this.isTooLarge = true;
      const refused = this.keys;
      this.tasks = [];
      this.keys = [];
      return refused;
    }
    for (const task of tasks) this.tasks.push(task);
    return [];
  }

  /** For people. */
  get tooLarge(): string {
    return `its graph is larger than ${this.bytesMax} bytes or ${TASKS_MAX} tasks; submit it in several graphs, or raise scheduler.limits.graph`;
  }

  /** The last part has come. Returns the tasks and keys of all, in their order. */
  end({ tasks, keys, parts = 0 }: Pick<SubmittedGraph, 'tasks' | 'keys' | 'parts'>): Assembled {
    const missing =
      parts === this.count
        ? {}
        : { refusal: 'parts of its graph were lost with a connection; submit it again' };
    if (this.count === 0) return { tasks, keys, ...missing };
    const refused = this.add({ tasks, keys });
    const all = this.isTooLarge
      ? { tasks: [], keys: refused, refusal: this.tooLarge }
      : { tasks: this.tasks, keys: this.keys, ...missing };
    this.tasks = [];
    this.keys = [];
    this.count = 0;
    this.nbytes = 0;
    this.isTooLarge = false;
    return all;
  }
}
