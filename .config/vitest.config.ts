import { availableParallelism } from 'node:os';

import { defineConfig } from 'vitest/config';

/**
 * The only limit of a test or hook: it ends what hangs, also on a small and busy machine, and judges no speed. Random tests that
 * are asked to look harder take longer.
 */
const LIMIT_MS = process.env['YARDMASTER_RUNS'] === undefined ? 300_000 : 3_600_000;

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    // Many tests wait for processes and timers: one file more than there are cores keeps them all busy.
    maxWorkers: availableParallelism() + 1,
    // The files of a worker share their modules: to load the product anew for each file takes longer than most of its tests.
    isolate: false,
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    // Says what it waited for just before the test ends.
    expect: { poll: { timeout: LIMIT_MS - 20_000 } },
  },
});
