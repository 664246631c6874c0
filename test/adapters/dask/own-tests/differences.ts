/** Tests of Dask that cannot pass with our scheduler, and why. */

const DIFFERENCES: readonly (readonly [test: string, why: string])[] = [];

/** Why a test fails with our scheduler; undefined: it should pass. */
export function whyDifferent(test: string): string | undefined {
  return DIFFERENCES.find(([name]) => test.split('[')[0] === name)?.[1];
}
