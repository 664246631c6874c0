import type { Clock } from '../api/clock.ts';

/**
 * Settles as the promise does, or rejects after a time.
 * @param onTimeout - makes the error
 */
export function withTimeout<T>(
  clock: Clock,
  promise: Promise<T>,
  timeoutMs: number,
  onTimeout: () => Error,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = clock.setTimer(timeoutMs, () => reject(onTimeout()));
    promise.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
