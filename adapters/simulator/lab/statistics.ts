/** A mean with its 95 % interval. */
export interface Interval {
  readonly mean: number;
  /** Half of the width. */
  readonly margin: number;
}

/** Arithmetic mean; NaN of nothing. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The mean of independent values with Student's 95 % interval; undefined of fewer than two. */
export function interval(values: readonly number[]): Interval | undefined {
  const { length } = values;
  if (length < 2) return undefined;
  const mean = meanOf(values);
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, margin: student(length - 1) * Math.sqrt(squares / (length - 1) / length) };
}

/** 0.975 quantile of the normal distribution. */
const NORMAL = 1.959963984540054;

/**
 * 0.975 quantile of Student's distribution: exact for one and two degrees of freedom, beyond by Fisher's expansion, which
 * is 0.1 % too low at three and better than that for more.
 */
export function student(freedom: number): number {
  if (freedom === 1) return Math.tan(0.475 * Math.PI);
  if (freedom === 2) return 0.95 * Math.sqrt(2 / (1 - 0.95 ** 2));
  const z = NORMAL;
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160,
  ];
  return terms.reduce((sum, term, index) => sum + term / freedom ** (index + 1), z);
}
