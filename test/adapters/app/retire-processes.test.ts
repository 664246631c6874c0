import { expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { processId, square } from '../cli/fixtures/tasks.js';

test('workers in separate processes give their results to others over TCP, and end', async () => {
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 3 });
  try {
    const client = await cluster.client();
    const { pids } = cluster;
    const squares = client.map(square, [1, 2, 3, 4, 5, 6, 7, 8]);
    await client.gather(squares);
    const everywhere = client.with({ replicas: Infinity }).submit(square, 9);
    const named = await client.scatter({ 'to-all': 10 }, { broadcast: true });
    expect([...(await client.replicate([everywhere, named['to-all']])).values()]).toEqual([3, 3]);
    expect((await client.replicate(squares[0], { n: 2 })).get(squares[0]!.key)).toBe(2);
    const { retired, kept } = await client.retireWorkers({ n: 2 });
    expect([retired.length, kept]).toEqual([2, []]);
    expect(await client.gather(squares)).toEqual([1, 4, 9, 16, 25, 36, 49, 64]);
    expect(await client.gather([everywhere, named['to-all']])).toEqual([81, 10]);
    await expect.poll(() => cluster.pids.length).toBe(1);
    expect(pids).toContain(await client.submit(processId).result());
  } finally {
    await cluster.close();
  }
});
