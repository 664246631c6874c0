const STEPS = 2000;
const POINTS = Array.from({ length: 40 }, (_, at) => at / 20 - 1);

/** Fits a polynomial to a sine by gradient descent, for one round more: the state with its error. */
export function train({ settings, weights = [0, 0, 0, 0], speeds = [0, 0, 0, 0], round = 0 }) {
  const { rate, momentum } = settings;
  let error = 0;
  for (let step = 0; step < STEPS; step++) {
    const slopes = [0, 0, 0, 0];
    error = 0;
    for (const x of POINTS) {
      const powers = [1, x, x * x, x * x * x];
      const guess = powers.reduce((sum, power, at) => sum + power * weights[at], 0);
      const miss = guess - Math.sin(3 * x);
      error += miss ** 2 / POINTS.length;
      for (const [at, power] of powers.entries()) slopes[at] += (miss * power) / POINTS.length;
    }
    speeds = speeds.map((speed, at) => momentum * speed - rate * slopes[at]);
    weights = weights.map((weight, at) => weight + speeds[at]);
  }
  return { settings, weights, speeds, round: round + 1, error };
}
