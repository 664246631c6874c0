/** To ask for it takes as long as to ask for the time. Each thread has its own. */
const ORIGIN_MS = performance.timeOrigin;

/**
 * Milliseconds since the epoch, with fractions, that do not jump when the machine's wall clock is set: the
 * same in all threads of a process.
 */
export function epochMs(): number {
  return ORIGIN_MS + performance.now();
}
