import { vi } from 'vitest';

/** Repeats a check until it passes; a check that never passes is named just before the time limit of the test. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 280_000, interval: 10 });
}
