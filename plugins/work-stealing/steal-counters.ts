import { LEVEL_COUNT } from './cost-levels.ts';

/** How much was asked for since the start. */
export class StealCounters {
  /** Tasks, all in all. */
  count = 0;
  /** Tasks by cost level. */
  readonly asked = new Array<number>(LEVEL_COUNT).fill(0);
  /** Seconds of work that victims would be rid of, by cost level. */
  readonly askedS = new Array<number>(LEVEL_COUNT).fill(0);

  add(level: number, seconds: number): void {
    this.count++;
    (this.asked[level] as number)++;
    (this.askedS[level] as number) += seconds;
  }
}
