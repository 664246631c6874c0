import { afterEach, describe, expect, it } from 'vitest';
import { YardmasterError } from '../../core/api/index.ts';
import { RawPeer, TestHost } from './kit.ts';

const hosts: TestHost[] = [];

async function start(options: Parameters<typeof TestHost.start>[0] = {}): Promise<TestHost> {
  const host = await TestHost.start(options);
  hosts.push(host);
  return host;
}

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});

const spec = { module: 'm', name: 'f', version: '1', args: new Uint8Array() };
const graphOf = (key: string, dependencies: string[] = []) => ({
  op: 'update-graph',
  tasks: [{ key, dependencies, runSpec: spec }],
  keys: [key],
});

describe('connections', () => {
  it('a task goes to the worker, and its result is told to the client', async () => {
    const host = await start();
    const worker = await host.worker('inmemory://w1');
    const client = await host.client();
    await client.send(graphOf('x'));
    expect(worker.ops()).toEqual(['compute-task']);
    const { runId } = worker.received[0] as { runId?: number };
    await worker.send({
      op: 'task-finished',
      key: 'x',
      runId,
      nbytes: 8,
      type: 'number',
      timings: [],
    });
    expect(client.received).toEqual([
      { op: 'key-in-memory', key: 'x', type: 'number', nbytes: 8, workers: ['inmemory://w1'] },
    ]);
    expect(host.scheduler.story('x').map(({ finish }) => finish)).toEqual([
      'waiting',
      'processing',
      'memory',
    ]);
  });
});
