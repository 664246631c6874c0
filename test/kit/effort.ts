/** The share of its runs that a random test makes in `npm test`. */
const SHARE = 1 / 4;

const { YARDMASTER_SEED: seed, YARDMASTER_RUNS: runs } = process.env;

/**
 * How hard a random test looks: in a quarter of so many runs, in all of them when `YARDMASTER_RUNS` is `all`, as in `.ci/run`, or
 * in as many as `YARDMASTER_RUNS` says. A failure prints its seed, which `YARDMASTER_SEED` repeats.
 */
export function effort(numRuns: number): { readonly numRuns: number; readonly seed?: number } {
  const asked = runs === undefined ? Math.ceil(SHARE * numRuns) : numRuns;
  return {
    numRuns: isExhaustive() ? Number(runs) : asked,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
  };
}

/** For a test that could look at every place: the distance of those at which it does. 1 when `YARDMASTER_RUNS` is a number. */
export function stride(places: number): number {
  if (isExhaustive()) return 1;
  return runs === undefined ? places / SHARE : places;
}

function isExhaustive(): boolean {
  return runs !== undefined && runs !== 'all';
}
