/** When long work pauses: each `count` steps. */
export class Pace {
  private left: number;

  constructor(private readonly count: number) {
    this.left = count;
  }

  /** Counts one step. Returns whether it is time for a pause. */
  isPauseDue(): boolean {
    if (--this.left > 0) return false;
    this.left = this.count;
    return true;
  }
}
