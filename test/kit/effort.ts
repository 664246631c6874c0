/**
 * How hard a random test looks: in so many runs, or in as many as `YARDMASTER_RUNS` says. A failure prints its seed, which
 * `YARDMASTER_SEED` repeats.
 */
export function effort(numRuns: number): { readonly numRuns: number; readonly seed?: number } {
  const { YARDMASTER_SEED: seed, YARDMASTER_RUNS: runs = numRuns } = process.env;
  return { numRuns: Number(runs), ...(seed === undefined ? {} : { seed: Number(seed) }) };
}
