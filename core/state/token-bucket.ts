/** The number of starts that a span of time allows. */
export interface Rate {
  /** Milliseconds from one start to the next, in the long run. */
  readonly intervalMs: number;
  /** Starts that may follow each other at once after a pause; at least 1, and not always whole. */
  readonly burst: number;
}

/** A whole token, as far as sums of fractions can tell. */
const WHOLE = 1 - 1e-9;

/**
 * A token for each start: it holds `burst` of them at most, and one comes in each interval. So in any span of time no more
 * start than `burst + span / intervalMs`. The tokens follow from the time at which they are asked for; nothing ticks.
 */
export class TokenBucket {
  /** @param tokens - how many it had at the time `sinceMs` */
  constructor(
    private rate: Rate,
    private tokens: number,
    private sinceMs: number,
  ) {}

  /** The time from which on there is a token, if none is taken before. */
  get dueMs(): number {
    return this.timeOf(WHOLE);
  }

  has(nowMs: number): boolean {
    return nowMs >= this.dueMs;
  }

  /** Whole tokens that there are. */
  startsAt(nowMs: number): number {
    return Math.max(0, Math.floor(this.tokensAt(nowMs) + 1 - WHOLE));
  }

  isFull(nowMs: number): boolean {
    return this.tokensAt(nowMs) >= this.rate.burst;
  }

  /** The time at which there will be as many tokens, if none is taken before. */
  timeOf(tokens: number): number {
    return this.sinceMs + (tokens - this.tokens) * this.rate.intervalMs;
  }

  /** Takes a token, which there may not be: then it is owed. */
  take(nowMs: number): void {
    this.set(this.tokensAt(nowMs) - 1, nowMs);
  }

  /** Another rate holds from now on. */
  setRate(rate: Rate, nowMs: number): void {
    this.set(this.tokensAt(nowMs), nowMs);
    this.rate = rate;
  }

  /** It has so many tokens now. */
  set(tokens: number, nowMs: number): void {
    this.tokens = tokens;
    this.sinceMs = nowMs;
  }

  /** The arguments with which the constructor makes it again, beside the rate. */
  saved(): readonly [tokens: number, sinceMs: number] {
    return [this.tokens, this.sinceMs];
  }

  private tokensAt(nowMs: number): number {
    const { tokens, sinceMs, rate } = this;
    return Math.min(rate.burst, tokens + Math.max(0, nowMs - sinceMs) / rate.intervalMs);
  }
}
