import { availableParallelism } from 'node:os';

import { defineConfig } from 'vitest/config';

/** The only limit of a test or hook: it ends what hangs, also on a small and busy machine, and judges no speed. */
const LIMIT_MS = 300_000;

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    // Most tests wait for processes: two at a time take less than one, also on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    // Says what it waited for just before the test ends.
    expect: { poll: { timeout: LIMIT_MS - 20_000 } },
  },
});
