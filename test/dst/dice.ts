import { Draw } from '../../adapters/simulator/index.ts';

/** Random choices, one after the other, from a seed. */
export class Dice {
  private readonly draw: Draw;
  private count = 0;

  /** @param subject - dice of another subject are not changed by what is drawn from these */
  constructor(
    seed: number,
    private readonly subject = 'dice',
  ) {
    this.draw = new Draw(seed);
  }

  /** At least 0, below 1. */
  next(): number {
    return this.draw.uniform(this.subject, this.count++);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number, both bounds included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  oneOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.next() * choices.length)]!;
  }

  /** Each of them with this probability, in their order. */
  some<T>(choices: readonly T[], probability = 0.5): T[] {
    return choices.filter(() => this.chance(probability));
  }
}
