import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  drop,
  type SuggestionGenerator,
} from '../../../core/api/index.ts';
import { EnsureBroadcast } from '../../../policies/amm/ensure-broadcast.ts';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import { type RawPeer, TestHost, startHost } from '../../kit/test-host.ts';

const folders: string[] = [];

const start = (activeMemoryManager: object, scheduler: object = {}): Promise<TestHost> =>
  startHost({ activeMemoryManager, ...scheduler });

/** Three workers, and a result on the first two. */
async function cluster(host: TestHost): Promise<RawPeer[]> {
  const addresses = ['inmemory://w1', 'inmemory://w2', 'inmemory://w3'];
  const workers: RawPeer[] = [];
  for (const address of addresses) workers.push(await host.worker(address));
  const client = await host.client();
  const items = [{ key: 'x', nbytes: 10, workers: addresses.slice(0, 2) }];
  await client.send({ op: 'update-data', items });
  return workers;
}

const holders = (host: TestHost): string[] =>
  (host.scheduler.cluster.tasks.get('x')?.whoHas.items ?? []).map(({ address }) => address);

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

describe('the Active Memory Manager in a scheduler', () => {
  it('runs by itself every two seconds and drops what is not needed', async () => {
    const host = await start({});
    const [first] = await cluster(host);
    await host.clock.advanceAsync(1_900);
    expect(holders(host)).toHaveLength(2);
    await host.clock.advanceAsync(200);
    expect(holders(host)).toEqual(['inmemory://w2']);
    expect(first?.received.at(-1)).toMatchObject({ op: 'remove-replicas', keys: ['x'] });
  });

  it('runs on request alone when start is false', async () => {
    const host = await start({ start: false });
    await cluster(host);
    await host.clock.advanceAsync(60_000);
    expect(holders(host)).toHaveLength(2);
    expect(host.scheduler.command('amm.running')).toBe(false);
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 1, accepted: 1 });
    expect(holders(host)).toHaveLength(1);
  });

  it('starts and stops by command, at its interval', async () => {
    const host = await start({ start: false, interval: '100 ms' });
    await cluster(host);
    expect(host.scheduler.command('amm.start')).toBe(true);
    expect(host.scheduler.command('amm.start')).toBe(true);
    expect(host.scheduler.command('amm.stop')).toBe(false);
    await host.clock.advanceAsync(1_000);
    expect(holders(host)).toHaveLength(2);
    host.scheduler.command('amm.start');
    await host.clock.advanceAsync(100);
    expect(holders(host)).toHaveLength(1);
  });

  it('asks for copies once, and again only when they have not come for a long time', async () => {
    const host = await start({
      start: false,
      policies: [{ use: 'ensure-broadcast', options: { key: 'x' } }],
    });
    const workers = await cluster(host);
    const request = {
      op: 'acquire-replicas',
      replicas: { keys: ['x'], whoHas: [['inmemory://w1', 'inmemory://w2']] },
    };
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 1, accepted: 1 });
    await host.clock.advanceAsync(29_000);
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 1, accepted: 0 });
    await host.settle();
    expect(workers[2]?.received).toMatchObject([request]);
    await host.clock.advanceAsync(2_000);
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 1, accepted: 1 });
    await host.settle();
    expect(workers[2]?.received).toMatchObject([request, request]);
    await workers[2]?.send({ op: 'add-keys', keys: ['x'] });
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 0, accepted: 0 });
  });

  it('a policy of a file, in the spelling of Dask, gets its checked options', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'yardmaster-amm-'));
    folders.push(folder);
    await writeFile(
      join(folder, 'policies.mjs'),
      `export class DropFrom {
        static optionsSchema = { type: 'object', required: ['address'], properties: { address: { type: 'string' } } };
        constructor(options) { this.options = options; }
        *run({ cluster }) {
          const worker = cluster.workers.get(this.options.address);
          for (const task of worker.hasWhat) yield { op: 'drop', task, candidates: [worker] };
        }
      }`,
    );
    const write = async (address: string): Promise<string> => {
      const file = join(folder, 'cluster.yaml');
      const text = `scheduler:
  activeMemoryManager:
    start: false
    policies:
      - class: ./policies.mjs#DropFrom
        address: ${address}
`;
      await writeFile(file, text);
      return file;
    };
    const host = await TestHost.start({ config: await write('inmemory://w2') });
    await cluster(host);
    host.scheduler.command('amm.runOnce');
    expect(holders(host)).toEqual(['inmemory://w1']);
    const config = await write('[1, 2]');
    const error: unknown = await TestHost.start({ config }).catch((thrown: unknown) => thrown);
    expect((error as Error).message.replaceAll(folder, 'FOLDER')).toContain(
      'FOLDER/cluster.yaml:6:18: scheduler.activeMemoryManager.policies[0].options.address must be text (got [1,2]) — DropFrom from ./policies.mjs',
    );
  });

  it.each([
    ['managed_in_memory', 'managed'],
    ['managed-in-memory', 'managed'],
    ['managed_spilled', 'spilled'],
    ['unmanaged_old', 'unmanagedOld'],
    ['process', 'process'],
  ])('the measure %s, as Dask spells it, is %s', async (measure, meant) => {
    const { scheduler } = await start({ start: false, measure });
    expect(scheduler.config.scheduler).toMatchObject({ activeMemoryManager: { measure: meant } });
  });

  it('a measure that does not exist is refused, with those that do', async () => {
    await expect(start({ measure: 'managed_on_disk' })).rejects.toThrow(
      'scheduler.activeMemoryManager.measure must be one of process, managed, managedTotal',
    );
  });

  it('classes and instances are given in code', async () => {
    class DropAll extends ActiveMemoryManagerPolicy {
      override *run(): SuggestionGenerator {
        for (const task of this.manager.scheduler.replicated) yield drop(task);
      }
    }
    const policies = [DropAll, new EnsureBroadcast({ key: 'y' })];
    const host = await start({ start: false, policies });
    await cluster(host);
    expect(host.scheduler.command('amm.runOnce')).toMatchObject({ suggested: 1, accepted: 1 });
  });

  it('what is no policy is refused', async () => {
    const config = { scheduler: { activeMemoryManager: { policies: ['tcp'] } } };
    await expect(TestHost.start({ config })).rejects.toThrow(
      'is no policy of the memory manager: it has no method run; extend ActiveMemoryManagerPolicy',
    );
  });

  it('a policy that throws is reported, more and more rarely, and the scheduler continues', async () => {
    class Broken extends ActiveMemoryManagerPolicy {
      override run(): SuggestionGenerator {
        throw new Error('on purpose');
      }
    }
    const host = await start({ interval: '1s', policies: [Broken] });
    await host.clock.advanceAsync(7_000);
    expect(host.log.messages).toEqual(
      ['', '', ' (failure 4 of this kind)'].map(
        (times) =>
          `policy "Broken" of the Active Memory Manager threw: on purpose; what it suggested before stands${times}`,
      ),
    );
    expect(host.scheduler.plugins[0]).toMatchObject({ name: 'amm', errorCount: 7 });
  });
});

describe('what is built in', () => {
  it.each(Object.keys(builtins))('%s can be loaded', async (name) => {
    expect(await builtins[name]?.()).toBeDefined();
  });
});
