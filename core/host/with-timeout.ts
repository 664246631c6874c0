import type { Clock, Timer } from '../api/clock.ts';

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
