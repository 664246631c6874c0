import { expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { defineTasks } from '../../../adapters/tasks/index.ts';
import * as plain from './fixtures/plain-module.mjs';

test.each(['inline', 'threads', 'processes'] as const)(
  'the functions of a module that knows nothing of tasks are defined from outside: %s',
  async (mode) => {
    const module = new URL('fixtures/plain-module.mjs', import.meta.url);
    const { double, triple } = defineTasks(module, plain);
    const cluster = await LocalCluster.start({ mode, workers: 1 });
    try {
      const client = await cluster.client();
      expect(await client.submit(double, client.submit(triple, 7)).result()).toBe(42);
    } finally {
      await cluster.close();
    }
  },
);
