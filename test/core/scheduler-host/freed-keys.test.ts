import { expect, it } from 'vitest';
import type { RawPeer } from '../../kit/test-host.ts';
import { startHost } from '../../kit/test-host.ts';

/** Workers that have finished tasks which one client wants. */
async function withResults(...held: (readonly string[])[]) {
  const host = await startHost();
  const workers: RawPeer[] = [];
  for (const index of held.keys()) workers.push(await host.worker(`inmemory://w${index}`));
  const client = await host.client();
  const items = held.flatMap((keys, index) =>
    keys.map((key) => ({ key, nbytes: 1, workers: [`inmemory://w${index}`] })),
  );
  await client.send({ op: 'update-data', items });
  for (const worker of workers) worker.received.length = 0;
  return { host, client, workers };
}

it('what one stimulus frees on a worker is one message', async () => {
  const { client, workers } = await withResults(['a', 'b', 'c']);
  await client.send({ op: 'client-releases-keys', keys: ['a', 'b', 'c'], stimulusId: 'x' });
  expect(workers[0]?.received).toHaveLength(1);
  const [message] = workers[0]?.received ?? [];
  expect(message).toMatchObject({ op: 'free-keys', stimulusId: 'x' });
  expect([...(message?.['keys'] as string[])].sort()).toEqual(['a', 'b', 'c']);
});

it('each worker receives its own keys', async () => {
  const { client, workers } = await withResults(['a', 'b'], ['c']);
  await client.send({ op: 'client-releases-keys', keys: ['a', 'b', 'c'] });
  const told = workers.map(({ received }) => received.map(({ keys }) => [...(keys as string[])]));
  expect(told.map((messages) => messages.map((keys) => keys.sort()))).toEqual([
    [['a', 'b']],
    [['c']],
  ]);
});

it('keys that different stimuli free are sent separately', async () => {
  const { client, workers } = await withResults(['a', 'b']);
  await client.send(
    { op: 'client-releases-keys', keys: ['a'] },
    { op: 'client-releases-keys', keys: ['b'] },
  );
  expect(workers[0]?.received).toMatchObject([{ keys: ['a'] }, { keys: ['b'] }]);
});
