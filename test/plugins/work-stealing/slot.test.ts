import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { definePlugin, type Stealing, type WorkerView } from '../../../core/api/index.ts';
import type { TestHost } from '../../kit/test-host.ts';
import { startHost } from '../../kit/test-host.ts';
import { numbered } from '../../kit/graph.ts';
import { StealEnv } from './kit.ts';
import longTasks from './long-tasks.ts';

const FIRST = 'inmemory://w1';
const SECOND = 'inmemory://w2';

/** Twenty tasks on the first worker; the second has just joined. */
async function loaded(host: TestHost, prefix = 'x'): Promise<TestHost> {
  await host.worker(FIRST);
  const client = await host.client();
  const keys = Array.from({ length: 20 }, (_, index) => `${prefix}-${index}`);
  await client.send({
    op: 'update-graph',
    keys,
    tasks: keys.map((key) => {
      return { key, dependencies: [], runSpec: key, workers: [FIRST], allowOtherWorkers: true };
    }),
  });
  await host.worker(SECOND);
  return host;
}

/** Tasks that the next round asks for. By Dask's rules it is 5 of the 20, by those of `calm` with no horizon 1. */
async function nextRound({ clock, scheduler }: TestHost): Promise<number> {
  const before = scheduler.cluster.stealsInFlight;
  await clock.advanceAsync(100);
  return scheduler.cluster.stealsInFlight - before;
}

const CALM = { use: 'calm', options: { horizonMs: 0 } };

describe('the slot stealing', () => {
  it('is filled by calm, and named wherever slots are', async () => {
    const host = await startHost({});
    expect(host.scheduler.policies.current.stealing).toBe('calm');
    expect(host.scheduler.bootReport()).toContain('- stealing: calm');
    await expect(
      startHost({ policies: { stealing: { use: { admits: () => true } } } }),
    ).rejects.toThrow('it has no method mayTake or victims or levelOf or order or pays');
  });

  it('is filled by the configuration, and in the old way by the mode of workStealing', async () => {
    const bySlot = await startHost({ policies: { stealing: CALM } });
    const byMode = await startHost({ workStealing: { mode: 'calm', horizon: 0 } });
    for (const host of [bySlot, byMode]) {
      expect(host.scheduler.policies.current.stealing).toBe('calm');
      expect(await nextRound(await loaded(host))).toBe(1);
    }
    const eager = await startHost({ workStealing: { mode: 'eager' } });
    expect(eager.scheduler.policies.current.stealing).toBe('dask');
  });

  it('is not filled in both ways at once', async () => {
    await expect(
      startHost({ workStealing: { mode: 'eager' }, policies: { stealing: 'calm' } }),
    ).rejects.toThrow(
      'scheduler.workStealing.mode fills the slot that scheduler.policies.stealing fills as well',
    );
  });

  it('is replaced and restored while the scheduler runs, from one round to the next', async () => {
    const host = await startHost({ workStealing: { mode: 'calm', horizon: 0 } });
    await loaded(host);
    const { policies } = host.scheduler;
    await policies.replace('stealing', 'dask');
    expect(policies.current.stealing).toBe('dask');
    expect(await nextRound(host)).toBe(5);
    await policies.restore('stealing');
    expect(policies.current.stealing).toBe('calm');
    expect(await nextRound(host)).toBe(0); // The five are on their way.
  });

  it('is filled by clients with what the operator offers', async () => {
    const host = await startHost({ clientPolicies: { stealing: { long: longTasks } } });
    const client = await host.client('other');
    const replacing = client.request('command', {
      command: 'replace-policy',
      parameters: { slot: 'stealing', use: 'long' },
    });
    await host.settle();
    await replacing;
    expect(host.scheduler.policies.current.stealing).toBe('long-tasks');
  });

  it('is filled by a plugin as long as the plugin is there', async () => {
    const plugin = definePlugin({
      name: 'keeper',
      apiVersion: 1,
      setup: (context) => context.providePolicy('stealing', { mayTake: () => false }),
    });
    const host = await loaded(await startHost({ plugins: [plugin] }));
    expect(host.scheduler.policies.current.stealing).toBe('keeper');
    expect(await nextRound(host)).toBe(0);
    await host.scheduler.removePlugin('keeper');
    expect(await nextRound(host)).toBe(1);
  });

  it('has no shadows, neither by configuration nor by call', async () => {
    await expect(startHost({ shadows: { stealing: 'calm' } })).rejects.toThrow(
      'scheduler.shadows.stealing cannot be set. The slot stealing has no shadows',
    );
    const { policies } = (await startHost({})).scheduler;
    const refusal = { code: 'ERR_SLOT', message: /^the slot stealing has no shadows/ };
    await expect(policies.startShadow('stealing', 'calm')).rejects.toMatchObject({
      code: refusal.code,
      message: expect.stringMatching(refusal.message) as string,
    });
    await expect(policies.promote('stealing')).rejects.toThrow(refusal.message);
    expect(policies.shadow('stealing')).toBeUndefined();
    expect(policies.stopShadow('stealing')).toBeUndefined();
  });
});

describe('a policy of ten lines', () => {
  it('is the example of the guide', () => {
    const example = readFileSync(new URL('./long-tasks.ts', import.meta.url), 'utf8');
    const guide = readFileSync(new URL('../../../docs/policies.md', import.meta.url), 'utf8');
    expect(guide).toContain(example.replace('../../../core/api/index.ts', 'yardmaster/policy'));
  });

  it.each([
    ['short', '900 ms', 0],
    ['long', '1 s', 5],
  ])(
    'leaves tasks where they are that take less than a second: %s',
    async (prefix, time, asked) => {
      const defaultTaskDurations = { [prefix]: time };
      const host = await startHost({
        defaultTaskDurations,
        policies: { stealing: { use: longTasks } },
      });
      expect(await nextRound(await loaded(host, prefix))).toBe(asked);
    },
  );
});

describe('a policy that leaves questions out is asked the others, and decides', () => {
  const place = (policy: Stealing): string[] => {
    const env = new StealEnv({ policy });
    return env.place({ w1: numbered('x', 20), w2: {}, w3: {} }).balance();
  };

  it('which workers take tasks, and how many', () => {
    const proposals = place({
      mayTake: ({ worker, takenCount }) => worker.name === 'w3' && takenCount < 2,
    });
    expect(proposals).toEqual(['x-19 w1 -> w3', 'x-18 w1 -> w3']);
  });

  it('from which workers tasks are stolen, thieves and repetitions left out', () => {
    const env = new StealEnv({
      policy: {
        victims: ({ workers }) => {
          const all = [...workers.values()];
          return [...all, ...all].filter(({ name }) => name !== 'w1');
        },
      },
    });
    env.place({ w1: numbered('x', 20), w2: numbered('y', 8), w3: {} });
    const proposals = env.balance();
    expect(proposals.length).toBeGreaterThan(0);
    expect(proposals.every((proposal) => proposal.endsWith('w2 -> w3'))).toBe(true);
    expect(new Set(proposals).size).toBe(proposals.length);
  });

  it('in which order tasks are stolen; equal ones go as usual', () => {
    const even = (key: string): number => Number(key.slice(2)) % 2;
    const proposals = place({ order: (a, b) => even(a.key) - even(b.key) });
    expect(proposals.slice(0, 2)).toEqual(['x-18 w1 -> w2', 'x-16 w1 -> w3']);
  });

  it('what pays, whatever the bound of the built-in policy says', () => {
    const asked: string[] = [];
    const env = new StealEnv({
      policy: {
        pays: ({ task, victim, thief }) => {
          asked.push(`${task.key} ${victim.worker.name} -> ${thief.worker.name}`);
          return true;
        },
        victims: ({ running }) => running,
        mayTake: ({ takenCount }) => takenCount < 1,
      },
    });
    // A single task: by Dask's rules it is not worth a look.
    env.place({ w1: numbered('x', 1), w2: {}, w3: {} }, { threads: 1 });
    expect(env.balance()).toEqual(['x-0 w1 -> w2']);
    expect(asked).toEqual(['x-0 w1 -> w2']);
  });

  it('what is not worth a look, by its own bound', () => {
    const pays = (): never => {
      throw new Error('asked');
    };
    expect(place({ pays, mayPay: () => false })).toEqual([]);
  });

  it('nothing about workers that are paused, whose tasks go in any case', () => {
    const env = new StealEnv({ policy: { pays: () => false, victims: () => [] } });
    env.place({ w1: numbered('x', 2), w2: {} }, { threads: 2 });
    env.setStatus('w1', 'paused');
    expect(env.balance()).toEqual(['x-1 w1 -> w2', 'x-0 w1 -> w2']);
  });
});

describe('a policy that fails', () => {
  const boom = (): never => {
    throw new Error('boom');
  };
  const stranger = { address: 'tcp://stranger:1' } as WorkerView;
  const faults: readonly (readonly [string, object, string])[] = [
    ['throws when a round begins', { begin: boom, pays: boom }, 'threw: boom'],
    ['throws in mayTake', { mayTake: boom }, 'threw: boom'],
    ['throws in victims', { victims: boom }, 'threw: boom'],
    ['throws in levelOf', { levelOf: boom }, 'threw: boom'],
    ['throws in order', { order: boom }, 'threw: boom'],
    ['throws in pays', { pays: boom }, 'threw: boom'],
    ['throws in mayPay', { pays: () => true, mayPay: boom }, 'threw: boom'],
    [
      'answers mayTake with nothing',
      { mayTake: () => undefined },
      'answered mayTake with undefined',
    ],
    ['answers pays with a promise', { pays: () => Promise.resolve(true) }, 'answered pays with'],
    [
      'answers victims with nothing',
      { victims: () => undefined },
      'answered victims with undefined',
    ],
    ['chooses nothing as a victim', { victims: () => [undefined] }, 'chose a victim that is not'],
    ['chooses a stranger', { victims: () => [stranger] }, 'cluster: tcp://stranger:1'],
    ['gives the level 15', { levelOf: () => 15 }, 'the cost level 15; allowed are'],
    ['gives the level NaN', { levelOf: () => NaN }, 'the cost level NaN; allowed are'],
    ['compares with NaN', { order: () => NaN }, 'answered order with NaN'],
  ];

  it.each(faults)('and %s is reported, and dask decides the round', async (_, methods, what) => {
    const policy = { name: 'mine', ...methods };
    const host = await loaded(await startHost({ policies: { stealing: { use: policy } } }));
    expect(await nextRound(host)).toBe(5);
    const messages = host.log.lines.map(({ message = '' }) => message);
    const reports = messages.filter((message) => message.includes('"mine"'));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain('policy "mine" of slot stealing');
    expect(reports[0]).toContain(what);
    expect(reports[0]).toContain('the built-in policy decided instead');
    expect(host.scheduler.crash).toBeUndefined();
    expect(host.scheduler.policies.current.stealing).toBe('mine');
  });

  it('in every round is reported the 1st, 2nd, 4th and 8th time, and anew after it was replaced', async () => {
    const policy = { name: 'mine', begin: boom, pays: boom };
    const host = await loaded(await startHost({ policies: { stealing: { use: policy } } }));
    const reports = (): string[] =>
      host.log.lines.flatMap(({ message = '' }) => (message.includes('"mine"') ? [message] : []));
    for (let round = 0; round < 9; round++) await nextRound(host);
    expect(reports()).toEqual([
      expect.stringMatching(/decided instead$/),
      expect.stringMatching(/decided instead$/),
      expect.stringContaining('(failure 4 of this policy)'),
      expect.stringContaining('(failure 8 of this policy)'),
    ]);
    await host.scheduler.replacePolicy('stealing', { ...policy });
    await nextRound(host);
    expect(reports()).toHaveLength(5);
  });

  it('is asked again in the next round', async () => {
    let rounds = 0;
    const policy = {
      begin: () => {
        if (++rounds === 1) boom();
      },
      pays: () => false,
    };
    const host = await loaded(await startHost({ policies: { stealing: { use: policy } } }));
    expect([await nextRound(host), await nextRound(host), rounds]).toEqual([5, 0, 2]);
  });

  it('keeps what it asked for before it failed', () => {
    let count = 0;
    const failures: string[] = [];
    const env = new StealEnv({
      policy: { pays: () => ++count <= 2 || boom(), victims: ({ running }) => running },
      failed: (what) => failures.push(what),
    });
    env.place({ w1: numbered('x', 20), w2: {} });
    const proposals = env.balance();
    expect(failures).toEqual(['threw: boom']);
    expect(env.enacted[0]).toHaveLength(2);
    expect(new Set(proposals).size).toBe(5);
    expect(env.cluster.stealsInFlight).toBe(5);
    expect(env.balancer.metrics.asked[0]).toBe(5);
  });
});
