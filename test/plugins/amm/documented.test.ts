import { describe, expect, it } from 'vitest';
import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  defineAmmPolicy,
  drop,
  MEMORY_MEASURES,
  replicate,
  type SuggestionGenerator,
  type WorkerView,
} from '../../../core/api/index.ts';
import type { TestHost } from '../../kit/test-host.ts';
import { type RawPeer, startHost } from '../../kit/test-host.ts';

// What the documents about the Active Memory Manager promise authors of policies, sentence by sentence,
// as far as no other test of this folder is about it.

const start = (policies: readonly (string | object)[], more: object = {}): Promise<TestHost> =>
  startHost({ activeMemoryManager: { interval: '1s', policies, ...more } });

const holders = (host: TestHost, key: string): string[] =>
  [...(host.scheduler.cluster.tasks.get(key)?.whoHas ?? [])].map(({ address }) => address);

/** A worker that has what it is asked to fetch as soon as it is asked. */
async function fetchingWorker(host: TestHost, address: string): Promise<RawPeer> {
  const worker = await host.worker(address);
  let handled = 0;
  host.clock.setTimer(0, function look() {
    for (const message of worker.received.slice(handled)) {
      handled++;
      if (message['op'] !== 'acquire-replicas') continue;
      const { keys } = message['replicas'] as { readonly keys: readonly string[] };
      worker.channel.send({ op: 'add-keys', keys });
    }
    host.clock.setTimer(100, look);
  });
  return worker;
}

async function put(
  host: TestHost,
  items: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const client = await host.client();
  const data = Object.entries(items).map(([key, workers]) => ({ key, nbytes: 100, workers }));
  await client.send({ op: 'update-data', items: data });
}

/** The example of the documents, in its shape: it asks a thousand times and lets the manager refuse. */
class EnsureBroadcast extends ActiveMemoryManagerPolicy<{ readonly key: string }> {
  override *run(): SuggestionGenerator {
    const task = this.manager.scheduler.tasks.get(this.options.key);
    if (task === undefined) return;
    for (let n = 0; n < 1000; n++) yield replicate(task);
  }
}

describe('the example of the documents', () => {
  const policies = ['foo', 'bar'].map((key) => ({ use: EnsureBroadcast, options: { key } }));

  it('two instances of one policy keep their own keys on all workers, also on one that comes later', async () => {
    const host = await start(policies);
    for (const name of ['w1', 'w2', 'w3']) await fetchingWorker(host, `inmemory://${name}`);
    await put(host, { foo: ['inmemory://w1'], bar: ['inmemory://w2'], other: ['inmemory://w1'] });
    await host.clock.advanceAsync(2_500);
    expect(holders(host, 'foo').sort()).toEqual(['w1', 'w2', 'w3'].map((w) => `inmemory://${w}`));
    expect(holders(host, 'bar')).toHaveLength(3);
    expect(holders(host, 'other')).toHaveLength(1);
    await fetchingWorker(host, 'inmemory://late');
    await host.clock.advanceAsync(2_500);
    expect(holders(host, 'foo')).toContain('inmemory://late');
    expect(holders(host, 'bar')).toContain('inmemory://late');
  });

  it('does nothing while the key is unknown, or all workers have a copy', async () => {
    const host = await start(policies, { start: false });
    await host.worker('inmemory://w1');
    expect(host.scheduler.amm.runOnce()).toMatchObject({ suggested: 0 });
    await put(host, { foo: ['inmemory://w1'] });
    const round = host.scheduler.amm.runOnce();
    expect(round).toMatchObject({ suggested: 1000, accepted: 0, refused: 1000, failures: [] });
  });
});

describe('a move', () => {
  it('is a copy in one round and a drop in a later one, when the copy is there', async () => {
    class Move extends ActiveMemoryManagerPolicy {
      override *run(): SuggestionGenerator {
        const { tasks, workers } = this.manager.scheduler;
        const task = tasks.get('x')!;
        const [from, to] = ['inmemory://w1', 'inmemory://w2'].map((w) => workers.get(w)!);
        if (task.whoHas.has(to!)) yield drop(task, [from!]);
        else yield replicate(task, [to!]);
      }
    }
    const host = await start([Move]);
    await host.worker('inmemory://w1');
    await fetchingWorker(host, 'inmemory://w2');
    await put(host, { x: ['inmemory://w1'] });
    await host.clock.advanceAsync(1_050);
    expect(holders(host, 'x')).toEqual(['inmemory://w1']);
    await host.clock.advanceAsync(200);
    expect(holders(host, 'x')).toEqual(['inmemory://w1', 'inmemory://w2']);
    await host.clock.advanceAsync(1_000);
    expect(holders(host, 'x')).toEqual(['inmemory://w2']);
  });
});

describe('what a policy sees', () => {
  it('its manager with scheduler, memory, pending moves and policies, which follow what is accepted', async () => {
    const seen: unknown[] = [];
    class Look extends ActiveMemoryManagerPolicy {
      override *run(): SuggestionGenerator {
        const { manager } = this;
        const task = manager.scheduler.tasks.get('x')!;
        const chosen = (yield replicate(task)) as WorkerView;
        const { replicate: coming, drop: going } = manager.pending.get(task)!;
        seen.push(chosen.address, coming.has(chosen), going.size, manager.copies(task));
        seen.push(manager.workersMemory.get(chosen));
        manager.policies.delete(this);
      }
    }
    const host = await start([Look], { start: false });
    await host.worker('inmemory://w1');
    await host.worker('inmemory://w2');
    await put(host, { x: ['inmemory://w1'] });
    const { amm } = host.scheduler;
    amm.runOnce();
    expect(seen).toEqual(['inmemory://w2', true, 0, 2, 100]);
    expect(amm.listPolicies().map(({ name }) => name)).toEqual(['keep-replicas']);
    // Both exist within a round alone; what is under way still counts.
    expect([amm.pending.size, amm.workersMemory.size]).toEqual([0, 0]);
    expect(amm.copies(host.scheduler.cluster.tasks.get('x')!)).toBe(2);
  });

  it.each(MEMORY_MEASURES)('workers are compared by each of the measures: %s', async (measure) => {
    const host = await start(['reduce-replicas'], { start: false, measure });
    await host.worker('inmemory://w1');
    await host.worker('inmemory://w2');
    await put(host, { x: ['inmemory://w1', 'inmemory://w2'] });
    expect(host.scheduler.amm.runOnce()).toMatchObject({ accepted: 1, failures: [] });
  });
});

describe('what a policy can do with its manager', () => {
  it('it starts and stops the rounds, and sees whether they run', async () => {
    const seen: boolean[] = [];
    class StopAtFirst extends ActiveMemoryManagerPolicy {
      // eslint-disable-next-line require-yield
      override *run({ running }: AmmView): SuggestionGenerator {
        seen.push(running);
        this.manager.stop();
        seen.push(this.manager.running);
        if (seen.length === 4) this.manager.start();
      }
    }
    const host = await start([StopAtFirst]);
    await host.clock.advanceAsync(3_500);
    expect(seen).toEqual([true, false]);
    host.scheduler.amm.runOnce();
    expect(seen.slice(2)).toEqual([false, false]);
    expect(host.scheduler.amm.running).toBe(true);
    await host.clock.advanceAsync(1_500);
    expect(seen.slice(4)).toEqual([true, false]);
  });

  it('it runs a round from a timer, and a round within a round is refused', async () => {
    const rounds: number[] = [];
    const policy = defineAmmPolicy({
      name: 'twice',
      apiVersion: 1,
      // eslint-disable-next-line require-yield
      *run(amm) {
        rounds.push(amm.clock.nowMs());
        if (rounds.length > 1) return;
        amm.clock.setTimer(300, () => amm.runOnce());
        expect(() => amm.runOnce()).toThrow('a policy cannot start another one');
      },
    });
    const host = await start([{ use: policy }], { start: false });
    host.scheduler.amm.runOnce();
    await host.clock.advanceAsync(1_000);
    expect(rounds).toHaveLength(2);
    expect(rounds[1]! - rounds[0]!).toBe(300);
  });

  it('it writes to the log of the scheduler', async () => {
    const policy = defineAmmPolicy({
      name: 'talks',
      apiVersion: 1,
      // eslint-disable-next-line require-yield
      *run({ log, cluster }) {
        log.warn({ workers: cluster.workers.size }, 'few workers');
      },
    });
    const host = await start([{ use: policy }], { start: false });
    expect(host.scheduler.amm.runOnce().failures).toEqual([]);
    expect(host.log.lines).toContainEqual(expect.objectContaining({ message: 'few workers' }));
  });

  it.each([true, false])(
    'it retires the worker that can best be done without, with rounds at an interval: %s',
    async (running) => {
      const outcomes: string[] = [];
      let isAsked = false;
      class Shrink extends ActiveMemoryManagerPolicy {
        // eslint-disable-next-line require-yield
        override *run({ cluster }: AmmView): SuggestionGenerator {
          if (isAsked || cluster.workers.size < 3) return;
          isAsked = true;
          const key = ({ address }: WorkerView): string => (address.endsWith('w3') ? 'b' : 'a');
          const chosen = this.manager.workersToClose({ n: 1, key });
          for (const worker of chosen) {
            void this.manager.retire(worker).then((outcome) => outcomes.push(outcome));
          }
        }
      }
      const host = await start([Shrink], { start: running });
      for (const name of ['w1', 'w2', 'w3']) await fetchingWorker(host, `inmemory://${name}`);
      const [w1, w3] = [['inmemory://w1'], ['inmemory://w3']];
      await put(host, { x: w3, y: w1, z: w1 });
      if (!running) host.scheduler.amm.runOnce();
      await host.clock.advanceAsync(6_000);
      expect(outcomes).toEqual(['retired']);
      expect([...host.scheduler.cluster.workers.keys()]).toEqual([
        'inmemory://w1',
        'inmemory://w2',
      ]);
      expect(holders(host, 'x')).toHaveLength(1);
    },
  );

  it('it learns what became of a worker that cannot be retired, or is gone', async () => {
    const host = await start([], { start: false });
    const { amm, cluster } = host.scheduler;
    await host.worker('inmemory://w1');
    await put(host, { x: ['inmemory://w1'] });
    const worker = cluster.workers.get('inmemory://w1')!;
    const kept = amm.retire(worker);
    await host.clock.advanceAsync(3_000);
    expect(await kept).toBe('no-recipients');
    const stranger = amm.retire({ address: 'inmemory://none' } as WorkerView);
    await host.clock.advanceAsync(10);
    expect(await stranger).toBe('unknown');
  });

  it('it cannot change what other policies see of the manager', async () => {
    const policy = defineAmmPolicy({
      name: 'meddles',
      apiVersion: 1,
      // eslint-disable-next-line require-yield
      *run(amm) {
        (amm as { stop: unknown }).stop = () => undefined;
      },
    });
    const host = await start([{ use: policy }], { start: false });
    expect(host.scheduler.amm.runOnce().failures).toHaveLength(1);
  });
});

describe('the memory of the cluster', () => {
  it('is the sum over its workers, in the shape of one worker', async () => {
    const host = await start([]);
    expect(host.scheduler.cluster.memory).toMatchObject({ process: 0, managed: 0, optimistic: 0 });
    for (const name of ['w1', 'w2']) await host.worker(`inmemory://${name}`);
    await put(host, { x: ['inmemory://w1'], y: ['inmemory://w2'], z: ['inmemory://w2'] });
    const { memory, workers } = host.scheduler.cluster;
    const each = [...workers.values()].map((worker) => worker.memory);
    for (const measure of MEMORY_MEASURES) {
      expect(memory[measure]).toBe(each.reduce((sum, one) => sum + one[measure], 0));
    }
    expect(memory.managed).toBe(300);
  });
});

describe('the end', () => {
  it('rounds end with the scheduler, and with the manager when it is stopped', async () => {
    let rounds = 0;
    class Count extends ActiveMemoryManagerPolicy {
      // eslint-disable-next-line require-yield
      override *run(): SuggestionGenerator {
        rounds++;
      }
    }
    const host = await start([Count]);
    await host.clock.advanceAsync(3_500);
    expect(rounds).toBe(3);
    const closing = host.scheduler.close();
    await host.clock.advanceAsync(5_000);
    await closing;
    expect(rounds).toBe(3);
  });
});
