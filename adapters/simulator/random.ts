/**
 * Random numbers that depend on a seed and on what they are for, not on the order in which they are drawn: the same
 * task takes the same time under every policy.
 */
export class Draw {
  private readonly base: number;

  constructor(seed: number) {
    this.base = scramble(seed | 0, 0x9e3779b9);
  }

  /** At least 0, below 1. `counter` tells several draws for the same subject apart. */
  uniform(subject: string, counter = 0): number {
    let hash = scramble(this.base, counter);
    for (let index = 0; index < subject.length; index++) {
      hash = Math.imul(hash ^ subject.charCodeAt(index), 0x01000193);
    }
    return (scramble(hash, subject.length) >>> 0) / 2 ** 32;
  }

  /** Log-normal with mean 1; `spread` is the standard deviation of its logarithm. */
  factor(spread: number, subject: string, counter = 0): number {
    if (spread === 0) return 1;
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform(subject, 2 * counter)));
    const angle = 2 * Math.PI * this.uniform(subject, 2 * counter + 1);
    return Math.exp(spread * radius * Math.cos(angle) - (spread * spread) / 2);
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number, subject: string, counter = 0): number {
    return Math.floor(this.uniform(subject, counter) * count);
  }
}

function scramble(hash: number, salt: number): number {
  let mixed = Math.imul(hash ^ salt ^ 0x85ebca6b, 0xc2b2ae35);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x2c1b3c6d);
  mixed ^= mixed >>> 12;
  mixed = Math.imul(mixed, 0x297a2d39);
  return mixed ^ (mixed >>> 15);
}
