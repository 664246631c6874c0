import { expect, it } from 'vitest';

import { SystemClock } from '../../../../adapters/clocks/index.ts';
import { DaskListener } from '../../../../adapters/dask/wire/listener.ts';
import { DaskBench, type FakePeer } from '../peers.ts';

const EVEN = { measure: 'managed', sender_min: 0, sender_recipient_gap: 0 };

/** Moves one of the two results that a worker holds, once the scheduler asks for it. */
async function moveOne(giver: FakePeer, taker: FakePeer): Promise<string> {
  const { stimulus_id: id, who_has: holders } = await taker.next('acquire-replicas');
  const [key] = Object.keys(holders as object);
  taker.send({ op: 'add-keys', keys: [key], stimulus_id: id });
  await giver.next('remove-replicas');
  return key!;
}

it('a rebalance is answered when the workers have dropped the results that were moved', async () => {
  const bench = await DaskBench.start({ workStealing: { start: false } });
  const held = new Set(['a', 'b']);
  let looks = 0;
  let moved = '';
  const listener = await DaskListener.listen(
    'tcp://127.0.0.1:0',
    { clock: new SystemClock() },
    (comm) => {
      const answer = async (): Promise<void> => {
        for (;;) {
          await comm.read();
          // The message on the stream takes effect after the first look.
          if (++looks === 2) held.delete(moved);
          comm.write([...held]);
        }
      };
      answer().catch(() => undefined);
    },
  );
  try {
    const giver = await bench.runningWorker(Number(listener.address.split(':').at(-1)));
    const client = await bench.client();
    for (const key of held) {
      client.submit(key);
      await giver.next('compute-task', [...held].indexOf(key) + 1);
      giver.finish(key, { nbytes: 100 });
    }
    await client.next('key-in-memory', 2);
    const taker = await bench.runningWorker(4002);
    const answer = bench.call('rebalance', EVEN);
    moved = await moveOne(giver, taker);
    expect(await answer).toEqual({ status: 'OK' });
    expect(held.size).toBe(1);
  } finally {
    await bench.close();
    await listener.close();
  }
});
