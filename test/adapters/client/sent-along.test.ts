import { expect, test } from 'vitest';
import { bytes, fail, inc } from './tasks.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

/** Connections to workers that the scheduler has opened to fetch results. */
async function fetches(
  scheduler: object,
  run: (cluster: VirtualCluster) => Promise<unknown>,
): Promise<readonly [result: unknown, connections: number]> {
  const cluster = await VirtualCluster.start(1, { scheduler });
  try {
    const result = await cluster.passing(run(cluster));
    const { scheduler: its } = await cluster.passing(cluster.client.connectionCounters());
    return [result, its.toWorkers];
  } finally {
    await cluster.close();
  }
}

/** Fetched through the scheduler, so that the test can see whether a request was made. */
const indirect = { direct: false } as const;

test('a small result is not fetched: it came with the news of it', async () => {
  const small = ({ client }: VirtualCluster): Promise<unknown> =>
    client.gather(client.map(inc, [1, 2]), indirect);
  expect(await fetches({ sendAlong: '1 KiB' }, small)).toEqual([[2, 3], 0]);
  expect(await fetches({ sendAlong: 0 }, small)).toEqual([[2, 3], 1]);
});

test('what is too large is fetched, beside what is not', async () => {
  const both = async ({ client }: VirtualCluster): Promise<unknown> => {
    const values = await client.gather(client.map(bytes, [1000, 1100]), indirect);
    return values.map(({ byteLength }) => byteLength);
  };
  expect(await fetches({ sendAlong: '1050 B' }, both)).toEqual([[1000, 1100], 1]);
});

test('a small result stays on its worker, for other clients and for tasks', async () => {
  const cluster = await VirtualCluster.start(1, { scheduler: { sendAlong: '1 KiB' } });
  try {
    const { client } = cluster;
    const one = client.submit(inc, 0);
    await cluster.passing(one.result());
    const other = await cluster.passing(cluster.local.client());
    const same = other.submit(inc, 0);
    expect(await cluster.passing(same.result())).toBe(1);
    expect(await cluster.passing(client.submit(inc, one).result())).toBe(2);
    expect(cluster.holders(one.key)).toHaveLength(1);
  } finally {
    await cluster.close();
  }
});

test('a call gives the result, and the cluster keeps neither task nor result', async () => {
  for (const sendAlong of ['1 KiB', 0]) {
    const cluster = await VirtualCluster.start(1, { scheduler: { sendAlong } });
    const { client, local } = cluster;
    expect(await cluster.passing(client.call(inc, 1))).toBe(2);
    await cluster.until(() => local.scheduler.cluster.tasks.size === 0);
    await cluster.close();
  }
});

test('a call rejects with what the task throws, and with what refuses its submission', async () => {
  const cluster = await VirtualCluster.start(1);
  const { client } = cluster;
  await expect(cluster.passing(client.call(fail, 'no'))).rejects.toThrow('no');
  const one = client.with({ maxOpen: 1, pure: false });
  const first = one.call(inc, 1);
  const code = 'ERR_QUEUE_FULL';
  await expect(cluster.passing(one.call(inc, 2))).rejects.toMatchObject({ code });
  expect(await cluster.passing(first)).toBe(2);
  await cluster.close();
});
