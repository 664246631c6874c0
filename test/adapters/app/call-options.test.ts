import { describe, expect, test } from 'vitest';
import { createScheduler } from '../../../adapters/app/index.ts';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { VirtualCluster } from '../../../adapters/testing/index.ts';

const CALLS: readonly [call: string, start: (options: never) => Promise<unknown>][] = [
  ['LocalCluster.start', (options) => LocalCluster.start(options)],
  ['VirtualCluster.start', (options) => VirtualCluster.start(options)],
  ['createScheduler', (options) => createScheduler(options)],
  ['createScheduler', (options) => startScheduler(options)],
  ['startWorker', (options) => startWorker('tcp://127.0.0.1:1', options)],
  ['Client.connect', (options) => Client.connect('tcp://127.0.0.1:1', options)],
];

async function refusal(start: Promise<unknown>): Promise<string> {
  const error: unknown = await start.then(
    () => 'nothing was refused',
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'ERR_CONFIG' });
  return (error as Error).message;
}

describe.each(CALLS)('%s', (call, start) => {
  test('refuses an option that there is not', async () => {
    expect(await refusal(start({ frobnicate: 1 } as never))).toContain(
      `${call}: frobnicate is not known; there are `,
    );
  });

  test('wants its options as an object', async () => {
    if (start === CALLS[3]?.[1]) return; // It takes what it adds off first.
    expect(await refusal(start(5 as never))).toBe(
      `${call}: its argument must be an object (got 5)`,
    );
  });
});

describe('LocalCluster.start', () => {
  test.each<[object, string]>([
    [
      { mode: 'process' },
      'mode must be one of inline, threads, processes (got "process"); did you mean "processes"?',
    ],
    [{ wrkers: 2 }, 'wrkers is not known; did you mean "workers"?'],
    [{ memoryLimit: 'lots' }, 'memoryLimit is not known; did you mean "memoryLimitBytes"?'],
    [{ memoryLimitBytes: '1 GB' }, 'memoryLimitBytes must be a number of bytes'],
    [{ workers: '2' }, 'workers must be a whole number of at least 0 (got "2")'],
    [{ mode: 'inline', threads: 0 }, 'worker.threads must be a whole number of at least 1 (got 0)'],
    [{ resources: { GPU: -1 } }, 'worker.resources.GPU must be a number of at least 0 (got -1)'],
    [{ killGraceMs: '5s' }, 'killGraceMs must be a number of milliseconds'],
    [{ memory: { pause: 2 } }, 'worker.memory.pause must be a number from 0 to 1'],
    [{ transport: { scheme: 'x' } }, 'transport.scheme is not known; there are use, options'],
    [{ adapt: 5 }, 'adapt must be an object'],
    [{ nanny: 'yes', config: 5 }, 'config must be text that is not empty or an object (got 5)'],
  ])('refuses %o', async (options, message) => {
    expect(await refusal(LocalCluster.start(options))).toContain(message);
  });

  test('takes every setting of workers, in milliseconds and bytes', async () => {
    const options = { killGraceMs: 250, memoryLimitBytes: 2e9, lifetimeMs: Infinity, threads: 3 };
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 0, ...options });
    const { killGrace, memoryLimit, lifetime, threads } = cluster.scheduler.config.worker;
    expect([killGrace, memoryLimit, lifetime, threads]).toEqual([250, 2e9, Infinity, 3]);
  });

  test('takes undefined for an option that is not given', async () => {
    const options = { mode: 'inline', workers: undefined, threads: undefined };
    await using cluster = await LocalCluster.start(options as never);
    expect(cluster.workerCount).toBe(2);
  });
});

describe('a running cluster', () => {
  const hook = { name: 'mine', workerAdded: () => undefined };

  test.each<[object, string]>([
    [
      { onError: 'crsh' },
      'onError must be one of log, disable, crash (got "crsh"); did you mean "crash"?',
    ],
    [{ onErr: 'crash' }, 'onErr is not known; did you mean "onError"?'],
  ])('refuses a plugin with %o', async (options, message) => {
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 0 });
    const added = cluster.scheduler.addPlugin(hook, options);
    expect(await refusal(added)).toBe(`addPlugin: ${message}`);
  });

  test('names the nearest slot', async () => {
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 0 });
    await expect(
      cluster.scheduler.replacePolicy('workerselection' as never, {}),
    ).rejects.toMatchObject({
      code: 'ERR_SLOT',
      message: expect.stringContaining(
        'there is no policy slot "workerselection"; did you mean "workerSelection"?',
      ) as string,
    });
  });
});

test.each([undefined, 5, ''])('Client.connect refuses the address %o', async (address) => {
  await expect(Client.connect(address as never)).rejects.toMatchObject({
    code: 'ERR_CONNECT',
    message: expect.stringContaining('wants the address of a scheduler') as string,
  });
});
