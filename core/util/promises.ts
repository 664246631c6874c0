/** A promise that is resolved from elsewhere. */
export class Deferred<T = void> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}

/** Callers that wait for the same event. */
export class Waiters {
  private readonly waiting: (() => void)[] = [];

  /** Resolves at the next {@link release}. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
    });
  }

  release(): void {
    if (this.waiting.length === 0) return; // As nearly always.
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
