/** Submissions that a new one is compared with. */
const KEPT_MAX = 1000;

/** Where a submission stands among the latest ones, by two numberings at once. */
export class Precedence {
  private readonly active: number[] = [];
  private readonly shadow: number[] = [];

  /** How many of the latest submissions come before this one: by the first numbering, by the second. */
  places(active: number, shadow: number): readonly [active: number, shadow: number] {
    const places = [before(this.active, active), before(this.shadow, shadow)] as const;
    this.active.push(active);
    this.shadow.push(shadow);
    if (this.active.length > KEPT_MAX) {
      this.active.shift();
      this.shadow.shift();
    }
    return places;
  }
}

function before(numbers: readonly number[], number: number): number {
  return numbers.reduce((count, other) => count + Number(other <= number), 0);
}
