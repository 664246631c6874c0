import { availableParallelism } from 'node:os';

import { defineConfig } from 'vitest/config';

/** Machines of CI are small and shared: a limit is there to end what hangs, not to judge speed. */
const patience = process.env['CI'] === 'true' ? 3 : 1;

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    // Most tests wait for processes: two at a time take less than one, also on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: patience * 20_000,
    hookTimeout: patience * 20_000,
    expect: { poll: { timeout: patience * 10_000 } },
  },
});
