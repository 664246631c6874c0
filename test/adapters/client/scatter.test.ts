import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '../../../adapters/client/index.ts';
import { hashOfValue } from '../../../adapters/client/keys.ts';
import type { Peers } from '../../../adapters/peers/peers.ts';
import { deserialise, serialise } from '../../../adapters/tasks/index.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { concat, count, inc, slow } from './tasks.ts';

describe('scattered values', () => {
  let cluster: VirtualCluster;
  let one: Client;
  let other: Client;
  const passing = <T>(promise: Promise<T>): Promise<T> => cluster.passing(promise);
  const known = (key: string) => cluster.local.scheduler.cluster.tasks.get(key);

  beforeAll(async () => {
    cluster = await VirtualCluster.start(3);
    one = cluster.client;
    other = await passing(cluster.local.client());
  });

  afterAll(() => cluster.close());

  it('are known to the scheduler when scatter resolves', async () => {
    const { fresh } = await passing(one.scatter({ fresh: 1 }));
    expect(known('fresh')?.state).toBe('memory');
    expect(fresh.status).toBe('finished');
  });

  it('may be more than one message has room for', async () => {
    const values = Array.from({ length: 10_001 }, (_, at) => `many-${at}`);
    const futures = await passing(one.scatter(values));
    expect(futures.every(({ status }) => status === 'finished')).toBe(true);
    expect(await passing(futures.at(-1)!.result())).toBe('many-10000');
    for (const future of futures) future.release();
  });

  it('get new copies when they are scattered again with workers or broadcast', async () => {
    const scatter = (options?: object) => passing(one.scatter({ again: 'same' }, options));
    await scatter({ workers: [cluster.names[0]!] });
    await scatter();
    expect(cluster.holders('again')).toEqual([cluster.names[0]]);
    await scatter({ workers: [cluster.names[1]!] });
    expect(cluster.holders('again')).toHaveLength(2);
    await scatter({ broadcast: true });
    expect(cluster.holders('again')).toEqual(cluster.names.toSorted());
  });

  it('of two clients under one name are one value, and the second client gets an error', async () => {
    const [first, second] = await passing(
      Promise.allSettled([
        one.scatter({ shared: 'of one' }, { broadcast: true }),
        other.scatter({ shared: 'of the other' }, { broadcast: true }),
      ]),
    );
    const refused = [first, second].filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { code: 'ERR_KEY_TAKEN' } }]);
    expect(cluster.holders('shared')).toEqual(cluster.names.toSorted());
    const value = first.status === 'fulfilled' ? 'of one' : 'of the other';
    for (const address of known('shared')!.whoHas.items.map((worker) => worker.address)) {
      const { peers } = (one as unknown as { session: { peers: Peers } }).session;
      const values = await passing(peers.getData(address, ['shared'], (_, n) => new Uint8Array(n)));
      expect(deserialise(values.get('shared') as Uint8Array)).toBe(value);
    }
  });

  it('are refused where another client has other data on another worker', async () => {
    const [at, elsewhere] = cluster.names as [string, string];
    const { named } = await passing(one.scatter({ named: 'first' }, { workers: [at] }));
    const refused = passing(other.scatter({ named: 'second' }, { workers: [elsewhere] }));
    await expect(refused).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    await passing(other.submit(count, 'sync').result());
    expect(cluster.holders('named')).toEqual([at]);
    expect(await passing(named.result())).toBe('first');
    expect([...known('named')!.whoWants.items].map(({ key }) => key)).toEqual([one.id]);
    // The other worker has dropped it, and takes the first value.
    await passing(other.scatter({ named: 'first' }, { workers: [elsewhere] }));
    expect(cluster.holders('named').sort()).toEqual([at, elsewhere].sort());
  });

  it('are refused where the result of a task is', async () => {
    const future = one.submit(inc, 41);
    expect(await passing(future.result())).toBe(42);
    const refused = passing(other.scatter({ [future.key]: 43 }));
    await expect(refused).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    expect(await passing(future.result())).toBe(42);
  });

  it('are refused where another client waits for the result of a task', async () => {
    const running = one.with({ key: 'running' }).submit(slow, 500, 1);
    const waiting = one.with({ key: 'waiting' }).submit(inc, running);
    await passing(one.identity());
    expect([known('running')?.state, known('waiting')?.state]).toEqual(['processing', 'waiting']);
    for (const key of ['running', 'waiting']) {
      const refused = passing(other.scatter({ [key]: 'of the other' }));
      await expect(refused).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    }
    expect(await passing(waiting.result())).toBe(2);
    waiting.release();
    running.release();
    await passing(one.identity());
    const { waiting: free } = await passing(other.scatter({ waiting: 'of the other' }));
    expect(await passing(free.result())).toBe('of the other');
  });

  it('that a client is about to put are never other data on a worker than under the reserved name', async () => {
    const reserve = (client: Client, fingerprint: string): Promise<unknown> =>
      passing(client.command('reserve-data', { keys: ['mine'], fingerprints: [fingerprint] }));
    await reserve(one, 'f');
    await reserve(one, 'f');
    await reserve(other, 'f'); // The same data.
    await passing(other.command('release-data', { keys: ['mine'] }));
    await expect(reserve(other, 'g')).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    const refused = passing(other.scatter({ mine: 'other data' }));
    await expect(refused).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    await passing(one.command('release-data', { keys: ['mine'] }));
    const { mine } = await passing(other.scatter({ mine: 'other data' }));
    expect(await passing(mine.result())).toBe('other data');
  });

  it('of a client that goes before the scheduler knows of them do not block the name', async () => {
    const lost = await passing(cluster.local.client());
    const keys = ['left'];
    await passing(lost.command('reserve-data', { keys, fingerprints: ['f'] }));
    const { peers } = (lost as unknown as { session: { peers: Peers } }).session;
    const bytes = serialise('of the lost client');
    for (const name of cluster.names) {
      await passing(peers.putData(cluster.worker(name).address, new Map([['left', bytes]])));
    }
    await passing(lost.close());
    const { left } = await passing(other.scatter({ left: 'of another' }, { broadcast: true }));
    expect(await passing(left.result())).toBe('of another');
    expect(cluster.holders('left')).toEqual(cluster.names.toSorted());
  });

  it('of one client under one name at the same time are one value', async () => {
    const [first, second] = await passing(
      Promise.allSettled([one.scatter({ own: 1 }), one.scatter({ own: 2 })]),
    );
    expect([first.status, second]).toMatchObject([
      'fulfilled',
      { reason: { code: 'ERR_KEY_TAKEN' } },
    ]);
  });

  it('of one client that are scattered twice at once are known when either call resolves', async () => {
    const first = one.scatter(['twice']);
    const [second] = await passing(one.scatter(['twice']));
    expect(second!.status).toBe('finished');
    expect(await passing(one.submit(concat, second!, '').result())).toBe('twice');
    expect((await passing(first))[0]!.key).toBe(second!.key);
  });

  it('stay on their workers while another client is about to put them there, and no longer', async () => {
    const { lent } = await passing(one.scatter({ lent: 'value' }));
    const [holder] = cluster.holders('lent');
    const stored = async (): Promise<number> => {
      const { peers } = (one as unknown as { session: { peers: Peers } }).session;
      const { address } = cluster.worker(holder!);
      return (await passing(peers.getData(address, ['lent'], (_, n) => new Uint8Array(n)))).size;
    };
    const parameters = { keys: ['lent'], fingerprints: [hashOfValue('value', 'value', true)] };
    await passing(other.command('reserve-data', parameters));
    lent.release();
    await passing(one.submit(count, 'released').result());
    expect([known('lent'), await stored()]).toEqual([undefined, 1]);
    const { lent: again } = await passing(other.scatter({ lent: 'value' }, { workers: [holder!] }));
    expect(await passing(other.submit(concat, again, '').result())).toBe('value');
    await passing(other.command('reserve-data', parameters));
    await passing(other.command('release-data', { keys: ['lent'] }));
    expect(await stored()).toBe(1);
    again.release();
    await passing(other.submit(count, 'released too').result());
    expect([known('lent'), await stored()]).toEqual([undefined, 0]);
  });

  it('that were refused leave the other values of the same call alone, and none of them is kept', async () => {
    await passing(one.scatter({ taken: 1 }));
    const refused = passing(other.scatter({ taken: 2, free: 3 }));
    await expect(refused).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    await passing(other.submit(count, 'sync 2').result());
    expect(known('free')).toBeUndefined();
  });
});

it('a task whose scattered input is lost says so, and what to do', async () => {
  const cluster = await VirtualCluster.start(1);
  try {
    const { client, local } = cluster;
    const { x } = await cluster.passing(client.scatter({ x: 1 }));
    const waiting = client.with({ workers: ['a worker to come'] }).submit(inc, x);
    await cluster.until(() => local.scheduler.cluster.tasks.get(waiting.key) !== undefined);
    const { address } = cluster.worker(cluster.names[0]!);
    local.scheduler.enqueue({ op: 'remove-worker', worker: address, expected: false, close: true });
    expect(await cluster.passing(waiting.error())).toMatchObject({
      code: 'ERR_LOST_DEPENDENCY',
      message: expect.stringContaining('one of its dependencies is gone') as string,
    });
  } finally {
    await cluster.close();
  }
});
