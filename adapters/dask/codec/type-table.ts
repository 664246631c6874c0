/** Types that are remembered; a program has far fewer. */
const TYPES_MAX = 10_000;

/**
 * The pickled classes of results by their names. Workers report both; the scheduler keeps the name,
 * and clients want the class.
 */
export class TypeTable {
  private readonly pickles = new Map<string, unknown>();

  learn(name: string, pickle: unknown): void {
    if (this.pickles.get(name) === pickle) return;
    if (this.pickles.size < TYPES_MAX || this.pickles.has(name)) this.pickles.set(name, pickle);
  }

  /** Undefined when no worker has reported the type. */
  pickleOf(name: string | undefined): unknown {
    return name === undefined ? undefined : this.pickles.get(name);
  }
}
