/** `SCHEDULER=tcp://… npx vitest run` takes a cluster that is there; without it, one starts here. */
import process from 'node:process';
import { defineConfig } from 'vitest/config';
import { yardmasterPool } from './pool/pool.js';

export default defineConfig({
  test: {
    pool: yardmasterPool({
      scheduler: process.env.SCHEDULER,
      cluster: { workers: Number(process.env.WORKERS ?? 2), mode: 'processes' },
    }),
    // The cluster decides how many run at the same time: it should know all of them.
    maxWorkers: 10_000,
  },
});
