import type { Run } from '../history.ts';

/** What was going on over time, on average in each stretch of it. */
export interface Load {
  readonly fromS: number;
  /** Length of a stretch. */
  readonly stepS: number;
  /** Threads that computed. */
  readonly running: readonly number[];
  /** Tasks that could have run and did not. */
  readonly waiting: readonly number[];
}

/** Stretches of time: a chart has no room for more. */
const STEPS = 300;

/** O(runs + stretches) */
export function loadOf(runs: readonly Run[], fromS: number, toS: number): Load {
  const stepS = Math.max(1e-6, (toS - fromS) / STEPS);
  const [running, waiting] = [new Spread(fromS, stepS), new Spread(fromS, stepS)];
  for (const { readyS, finishedS, timings } of runs) {
    waiting.add(readyS, finishedS, 1);
    for (const { action, startS, stopS } of timings) {
      if (action !== 'compute') continue;
      running.add(startS, stopS, 1);
      waiting.add(startS, stopS, -1);
    }
  }
  return { fromS, stepS, running: running.averages(), waiting: waiting.averages() };
}

/** Adds intervals up in bins, with the difference of neighbours, so that a long one costs no more than a short one. */
class Spread {
  private readonly partial = new Float64Array(STEPS + 1);
  private readonly steps = new Float64Array(STEPS + 2);

  constructor(
    private readonly fromS: number,
    private readonly stepS: number,
  ) {}

  add(startS: number, stopS: number, weight: number): void {
    const from = this.placeOf(startS);
    const to = this.placeOf(stopS);
    const [first, last] = [Math.floor(from), Math.floor(to)];
    if (first === last) {
      this.put(first, weight * (to - from));
      return;
    }
    this.put(first, weight * (first + 1 - from));
    this.put(last, weight * (to - last));
    this.steps[first + 1] = (this.steps[first + 1] ?? 0) + weight;
    this.steps[last] = (this.steps[last] ?? 0) - weight;
  }

  averages(): readonly number[] {
    let whole = 0;
    return Array.from({ length: STEPS }, (_, index) => {
      whole += this.steps[index] ?? 0;
      return Math.max(0, Math.round(100 * (whole + (this.partial[index] ?? 0))) / 100);
    });
  }

  private placeOf(atS: number): number {
    return Math.max(0, Math.min(STEPS, (atS - this.fromS) / this.stepS));
  }

  private put(index: number, amount: number): void {
    this.partial[index] = (this.partial[index] ?? 0) + amount;
  }
}
