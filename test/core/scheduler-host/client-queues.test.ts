import { afterEach, describe, expect, it } from 'vitest';
import type { TaskState } from '../../../core/state/task.ts';
import { type RawPeer, TestHost } from '../../kit/test-host.ts';

const hosts: TestHost[] = [];

async function start(): Promise<TestHost> {
  // Every stimulus would check thousands of tasks.
  const host = await TestHost.start({ config: { scheduler: { validate: false } } });
  hosts.push(host);
  return host;
}

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});

const LARGE = 4500;

function graphOf(prefix: string, count: number) {
  const keys = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const tasks = keys.map((key) => ({ key, dependencies: [], runSpec: 'compute' }));
  return { op: 'update-graph', tasks, keys };
}

function runsOn(host: TestHost): number {
  return [...host.scheduler.cluster.tasks.values()].filter(({ state }) => state !== 'released')
    .length;
}

async function settleFor(host: TestHost): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await host.settle();
}

describe('a large graph', () => {
  it('is submitted over many turns, and other clients are served meanwhile', async () => {
    const host = await start();
    await host.worker('inmemory://w1');
    const [large, small] = [await host.client('large'), await host.client('small')];
    large.channel.send(graphOf('x', LARGE));
    small.channel.send(graphOf('y', 1));
    await settleFor(host);
    expect(runsOn(host)).toBe(LARGE + 1);
    expect((host.scheduler.cluster.tasks.get('y-0') as TaskState).runId).toBe(0);
  });

  it('may come in parts', async () => {
    const host = await start();
    const client = await host.client();
    const { tasks, keys } = graphOf('x', 30);
    await client.send(
      { op: 'graph-part', tasks: tasks.slice(0, 10), keys: keys.slice(0, 10) },
      { op: 'graph-part', tasks: tasks.slice(10, 20), keys: keys.slice(10, 20) },
    );
    expect(host.scheduler.cluster.tasks.size).toBe(0);
    const rest = { tasks: tasks.slice(20), keys: keys.slice(20) };
    await client.send({ op: 'update-graph', ...rest, parts: 2 });
    expect([...host.scheduler.cluster.tasks.keys()]).toEqual(keys);
  });

  it('of which a part is missing is cancelled', async () => {
    const host = await start();
    const client = await host.client();
    const { tasks, keys } = graphOf('x', 2);
    await client.send({ op: 'update-graph', tasks, keys, parts: 3 });
    expect(client.received).toMatchObject([{ op: 'cancelled-keys', keys }]);
    expect(host.scheduler.cluster.tasks.size).toBe(0);
  });

  it('what its client says next comes after it', async () => {
    const host = await start();
    const client = await host.client();
    const { keys } = graphOf('x', LARGE);
    client.channel.send(graphOf('x', LARGE), { op: 'client-releases-keys', keys: keys.slice(1) });
    await settleFor(host);
    expect([...host.scheduler.cluster.tasks.keys()]).toEqual(['x-0']);
  });

  it('what its client asks next is answered after it', async () => {
    const host = await start();
    const client = await host.client();
    client.channel.send(graphOf('x', LARGE));
    const answer = client.channel.request<{ tasks: number }>('command', { command: 'identity' });
    let runsWhenAnswered = 0;
    void answer.then(() => (runsWhenAnswered = runsOn(host)));
    await settleFor(host);
    expect(runsWhenAnswered).toBe(LARGE);
  });

  it('of a client that leaves is dropped', async () => {
    const host = await start();
    const client = await host.client();
    client.channel.send(graphOf('x', LARGE), graphOf('y', LARGE));
    for (let turn = 0; turn < 4; turn++) await host.clock.advanceAsync(0);
    expect(host.scheduler.cluster.tasks.size).toBeGreaterThan(0);
    client.channel.abort(new Error('the power is out'));
    await settleFor(host);
    expect(host.scheduler.cluster.tasks.size).toBe(0);
    expect(host.scheduler.cluster.clients.has('client-1')).toBe(false);
  });
});

it('a client that has said very much has its turns with the others', async () => {
  const host = await start();
  const [talker, other] = [await host.client('talker'), await host.client('other')];
  const many = Array.from({ length: 8000 }, (_, index) => graphOf(`t${index}`, 1));
  talker.channel.send(graphOf('x', LARGE), ...many);
  other.channel.send(graphOf('y', LARGE), graphOf('z', 1));
  const { tasks } = host.scheduler.cluster;
  for (let left = 5000; !tasks.has('z-0') && left > 0; left--) {
    host.clock.runNext();
    await Promise.resolve();
  }
  expect(tasks.has('z-0')).toBe(true);
  expect(tasks.has('t7999-0')).toBe(false);
  await settleFor(host);
  expect(tasks.has('t7999-0')).toBe(true);
});

describe('very many keys', () => {
  async function finished(host: TestHost, client: RawPeer): Promise<readonly string[]> {
    const graph = graphOf('x', LARGE);
    await client.send(graph);
    await settleFor(host);
    return graph.keys;
  }

  it('are released by and by, and others are served meanwhile', async () => {
    const host = await start();
    const [client, other] = [await host.client(), await host.client('other')];
    const keys = await finished(host, client);
    client.channel.send({ op: 'client-releases-keys', keys });
    other.channel.send(graphOf('y', 1));
    await host.settle();
    expect([...host.scheduler.cluster.tasks.keys()]).toEqual(['y-0']);
    const story = host.scheduler.story();
    const [first, last] = [story.findIndex(({ key }) => key === 'y-0'), story.length - 1];
    expect(story[first - 1]?.finish).not.toBe('forgotten');
    expect(story[last]?.finish).toBe('forgotten');
  });

  it('are wanted by and by, and others are served meanwhile', async () => {
    const host = await start();
    const [client, admirer] = [await host.client(), await host.client('admirer')];
    const other = await host.client('other');
    const keys = await finished(host, client);
    const { clients } = host.scheduler.cluster;
    const wanted = (): number => clients.get('admirer')?.wantsWhat.size ?? 0;
    let wantedThen: number | undefined;
    await host.scheduler.addPlugin({
      name: 'watch',
      apiVersion: 1,
      setup: () => ({ taskTransition: () => void (wantedThen ??= wanted()) }),
    });
    admirer.channel.send({ op: 'client-desires-keys', keys });
    other.channel.send(graphOf('y', 1));
    await settleFor(host);
    expect(wantedThen).toBeLessThan(LARGE);
    expect(wanted()).toBe(LARGE);
  });

  it('are released gradually when their client leaves', async () => {
    const host = await start();
    const client = await host.client();
    await finished(host, client);
    void client.channel.close();
    await host.settle();
    expect(host.scheduler.cluster.tasks.size).toBe(0);
    expect(host.scheduler.cluster.clients.has('client-1')).toBe(false);
  });

  it('that are only needed by a released key are released gradually', async () => {
    const host = await start();
    const [client, other] = [await host.client(), await host.client('other')];
    const { tasks, keys } = graphOf('x', LARGE);
    const sum = { key: 'sum', dependencies: keys, runSpec: 'compute' };
    await client.send({ op: 'update-graph', tasks: [...tasks, sum], keys: ['sum'] });
    await settleFor(host);
    client.channel.send({ op: 'client-releases-keys', keys: ['sum'] });
    // Said right after that, it waits until the key may mean something else.
    const again = { key: 'x-0', dependencies: [], runSpec: 'compute something else' };
    client.channel.send({ op: 'update-graph', tasks: [again], keys: ['x-0'] });
    other.channel.send(graphOf('y', 1));
    await settleFor(host);
    const known = host.scheduler.cluster.tasks;
    expect([...known.keys()]).toEqual(['y-0', 'x-0']);
    expect((known.get('x-0') as TaskState).runSpec).toBe('compute something else');
  });
});

describe('a few keys', () => {
  it('that are released hold up nothing that their client says next', async () => {
    const host = await start();
    const [client, other] = [await host.client(), await host.client('other')];
    await client.send(graphOf('x', 1));
    client.channel.send({ op: 'client-releases-keys', keys: ['x-0'] }, graphOf('y', 1));
    other.channel.send(graphOf('z', 1));
    await host.settle();
    expect([...host.scheduler.cluster.tasks.keys()]).toEqual(['y-0', 'z-0']);
  });
});

it('a question of a client that leaves before its turn is not carried out', async () => {
  const host = await start();
  const [gone, other] = [await host.client('gone'), await host.client('other')];
  const reserve = (fingerprint: string) => {
    const parameters = { keys: ['k'], fingerprints: [fingerprint] };
    return { command: 'reserve-data', parameters };
  };
  gone.channel.send(graphOf('x', 30_000));
  const refused = expect(gone.channel.request('command', reserve('f'))).rejects.toThrow();
  const { tasks } = host.scheduler.cluster;
  for (let left = 9; tasks.size === 0 && left > 0; left--) {
    host.clock.runNext();
    await Promise.resolve();
  }
  expect(tasks.size).toBeGreaterThan(0);
  gone.channel.abort(new Error('it left'));
  await settleFor(host);
  await refused;
  expect(await other.request('command', reserve('g'))).toBeDefined();
});
