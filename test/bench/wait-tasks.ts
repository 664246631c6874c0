/** What `bench -- waits` runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { workerClient } from '../../adapters/client/index.ts';
import { concurrent, defineTasks } from '../../adapters/tasks/index.ts';

export const { leaf, parent, fetchPage, parentOfFetch } = defineTasks(import.meta.url, {
  async leaf(index: number): Promise<number> {
    await sleep(20);
    return index;
  },
  async parent(index: number): Promise<number> {
    const client = await workerClient();
    return client.submit(leaf, index).result();
  },
  fetchPage: concurrent(50, async (index: number, ms: number): Promise<number> => {
    await sleep(ms);
    return index;
  }),
  async parentOfFetch(index: number): Promise<number> {
    const client = await workerClient();
    return client.submit(fetchPage, index, 20).result();
  },
});
