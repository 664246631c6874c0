/** How a nanny goes about a worker that dies again and again. */
export interface RestartRules {
  /** Milliseconds before the first restart; twice as many before each further one. */
  readonly firstDelayMs: number;
  /** Milliseconds; it never waits longer. */
  readonly longestDelayMs: number;
  /** Milliseconds after which a registered worker counts as well, and the count begins anew. */
  readonly stableAfterMs: number;
  /** Early deaths in a row after which the nanny gives up. 0: it never restarts. */
  readonly attemptsMax: number;
}

/** Ten attempts within about eighty seconds. */
export const RESTART_RULES: RestartRules = {
  firstDelayMs: 100,
  longestDelayMs: 30_000,
  stableAfterMs: 10_000,
  attemptsMax: 10,
};

/**
 * Milliseconds before the next start; undefined: give up.
 * @param deathCount - early deaths in a row, at least 1
 */
export function restartDelayMs(rules: RestartRules, deathCount: number): number | undefined {
  if (deathCount > rules.attemptsMax) return undefined;
  return Math.min(rules.longestDelayMs, rules.firstDelayMs * 2 ** (deathCount - 1));
}
