import type { Clock, Timer } from '../api/clock.ts';

/** Answers that are promised and not settled yet. Each settles, at the latest when its answerer ends. */
export class PendingAnswers {
  private readonly open = new Set<(error: Error) => void>();

  get size(): number {
    return this.open.size;
  }

  /** The same answer, unless {@link failAll} comes first. */
  add<T>(answer: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.open.add(reject);
      const settled = (): void => {
        this.open.delete(reject);
      };
      answer.then(
        (value) => {
          settled();
          resolve(value);
        },
        (error: unknown) => {
          settled();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }

  /** The answerer is gone: what is still open fails with this. */
  failAll(error: Error): void {
    for (const reject of [...this.open])
      reject(error instanceof Error ? error : new Error(String(error)));
    this.open.clear();
  }
}

/**
 * Settles as the promise does, or rejects after a time.
 * @param onTimeout - makes the error
 */
export async function withTimeout<T>(
  clock: Clock,
  promise: Promise<T>,
  timeoutMs: number,
  onTimeout: () => Error,
): Promise<T> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(timeoutMs, () => reject(onTimeout()));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer?.cancel();
  }
}
