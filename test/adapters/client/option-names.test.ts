import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client, wait } from '../../../adapters/client/index.ts';
import { inc } from './tasks.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
let client: Client;
beforeAll(async () => {
  cluster = await VirtualCluster.start(1);
  ({ client } = cluster);
});
afterAll(() => cluster.close());

/** A misspelt `timeoutMs`. */
const ODD = { timeoutMS: 5 } as never;

describe('a misspelt option is refused, not ignored:', () => {
  test.each<[string, () => unknown]>([
    ['getLogs', () => client.getLogs(ODD)],
    ['getVersions', () => client.getVersions(ODD)],
    ['dumpClusterState', () => client.dumpClusterState('/nowhere', ODD)],
    ['broadcast', () => client.broadcast('inspect', { what: 'identity' }, ODD)],
    ['proxy', () => client.proxy('worker-0', 'inspect', { what: 'identity' }, ODD)],
    ['callStack', () => client.callStack(undefined, ODD)],
    ['connectionCounters', () => client.connectionCounters(ODD)],
    ['restart', () => client.restart(ODD)],
    ['benchmarkHardware', () => client.benchmarkHardware(ODD)],
    ['on', () => client.on(ODD)],
    ['restartWorkers', () => client.restartWorkers([], ODD)],
    ['adaptiveTarget', () => client.adaptiveTarget(ODD)],
    ['retireWorkers', () => client.retireWorkers(ODD)],
    ['workersToClose', () => client.workersToClose(ODD)],
    ['rebalance', () => client.rebalance(undefined, ODD)],
    ['replicate', () => client.replicate([], ODD)],
    [
      'registerWorkerPlugin',
      () => client.registerWorkerPlugin({ use: './x.js', nmae: 'x' } as never),
    ],
    ['gather', () => client.gather([], ODD)],
    ['scatter', () => client.scatter([1], ODD)],
    ['with', () => client.with(ODD)],
    ['cancel', () => client.cancel(client.submit(inc, 1), ODD)],
    ['cancel of a future', () => client.submit(inc, 1).cancel(ODD)],
    ['setPriority', () => client.setPriority(client.submit(inc, 2), 1, ODD)],
    ['wait', () => wait([client.submit(inc, 2)], ODD)],
    ['publish', () => client.publish('x', 1, ODD)],
    ['queue', () => client.queue('q', ODD)],
    ['get of a queue', () => client.queue('q').get(ODD)],
    ['get of a variable', () => client.variable('v').get(ODD)],
    ['semaphore', () => client.semaphore('s', { leases: 1, laeses: 2 } as never)],
    ['acquire', () => client.lock('l').acquire(ODD)],
    ['wait of an event', () => client.event('e').wait(ODD)],
    ['connect', () => Client.connect('inmemory://scheduler', ODD)],
  ])('%s', async (_what, call) => {
    let error: unknown;
    try {
      await cluster.passing(Promise.resolve(call()));
    } catch (thrown) {
      error = thrown;
    }
    expect(String(error)).toMatch(/timeoutMS is not known|did you mean/);
    expect((error as { code: string }).code).toMatch(/^ERR_(CONFIG|GRAPH_INVALID|PROTOCOL)$/);
  });

  test.each<[string, () => unknown]>([
    ['gather', () => client.gather([], { errors: 'ignore' as never })],
    ['on', () => client.on({ place: 'thread' as never })],
    ['wait', () => wait([], { returnWhen: 'any' as never })],
    ['setPriority', () => client.setPriority([], 1, { inputs: 'raised' as never })],
  ])('so is a value that there is not: %s', async (_what, call) => {
    await expect((async () => cluster.passing(Promise.resolve(call())))()).rejects.toThrow(
      /must be one of .*got/,
    );
  });
});
