import { asError } from '../api/errors.ts';

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
          reject(asError(error));
        },
      );
    });
  }

  /** The answerer is gone: what is still open fails with this. */
  failAll(error: Error): void {
    for (const reject of [...this.open]) reject(error);
    this.open.clear();
  }
}
