/** What `console.log` shows of the objects that users hold. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, LocalCluster } from '../../../adapters/app/index.ts';

let cluster: LocalCluster;
let client: Client;

beforeAll(async () => {
  cluster = await LocalCluster.start({ mode: 'inline', workers: 2 });
  client = await cluster.client();
});
afterAll(() => cluster.close());

it('a cluster shows its address and its workers', () => {
  expect(inspect(cluster)).toBe(`<LocalCluster ${cluster.address} 2 workers>`);
});

it('a client shows its name and whether it is connected', async () => {
  expect(inspect(client)).toBe(`<Client ${client.id} connected>`);
  const other = await cluster.client();
  await other.close();
  expect(inspect(other)).toBe(`<Client ${other.id} closed>`);
});

it('a scheduler shows its counts and policies', () => {
  expect(inspect(cluster.scheduler).split('\n')).toEqual([
    '<Scheduler 2 workers, 2 clients, 0 tasks>',
    '  workerSelection: locality-first',
    '  queuing: family',
    '  ordering: depth-first',
    '  fairness: fifo',
    '  stealing: calm',
  ]);
});
