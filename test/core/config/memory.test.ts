import { describe, expect, it } from 'vitest';
import { configuration } from '../../../adapters/app/config.ts';
import { RetireWorker } from '../../../policies/amm/retire-worker.ts';

const load = (input: object): ReturnType<typeof configuration.loadObject>['config']['scheduler'] =>
  configuration.loadObject(input).config.scheduler;

describe('rebalance and the age of old memory', () => {
  it("have Dask's defaults, one by one", () => {
    const { rebalance, recentToOldTime } = load({ scheduler: { rebalance: { senderMin: 0.5 } } });
    expect(rebalance).toEqual({
      measure: 'optimistic',
      senderMin: 0.5,
      recipientMax: 0.6,
      senderRecipientGap: 0.1,
    });
    expect(recentToOldTime).toBe(30_000);
  });

  it.each(['sender-min', 'sender_min', 'senderMin'])(
    'are taken from where Dask has them, in its spelling: %s',
    (senderMin) => {
      const rebalance = {
        measure: 'managed_in_memory',
        [senderMin]: 0.2,
        'recipient-max': 0.7,
        'sender-recipient-gap': 0,
      };
      const memory = { rebalance, 'recent-to-old-time': '10s', target: 0.5 };
      const { config } = configuration.loadObject({ worker: { memory } });
      expect(config.scheduler).toMatchObject({
        rebalance: { measure: 'managed', senderMin: 0.2, recipientMax: 0.7, senderRecipientGap: 0 },
        recentToOldTime: 10_000,
      });
      expect(config.worker.memory).toMatchObject({ target: 0.5 });
      expect(config.worker.memory).not.toHaveProperty('rebalance');
    },
  );

  it('are refused when they are written in both places', () => {
    const input = {
      scheduler: { recentToOldTime: '1s' },
      worker: { memory: { recentToOldTime: '2s' } },
    };
    expect(() => load(input)).toThrow(
      'worker.memory.recentToOldTime is written in scheduler.recentToOldTime as well; leave one out',
    );
  });

  it.each([
    [{ senderMin: 1.5 }, 'scheduler.rebalance.senderMin must be a number from 0 to 1 (got 1.5)'],
    [{ gap: 0.1 }, 'scheduler.rebalance.gap is not known'],
    [{ measure: 'rss' }, 'scheduler.rebalance.measure must be one of process, managed'],
  ])('are checked: %j', (rebalance, message) => {
    expect(() => load({ scheduler: { rebalance } })).toThrow(message);
    expect(() => load({ worker: { memory: { rebalance } } })).toThrow(message);
  });
});

describe('the policy retire-worker in a configuration', () => {
  it.each([
    'retire-worker',
    { use: 'retire-worker', options: { address: 'a' } },
    { class: 'retire-worker', address: 'a' },
    { class: 'distributed.active_memory_manager.RetireWorker', address: 'a' },
  ])('is refused with the reason: %j', (entry) => {
    const policies = ['reduce-replicas', entry];
    expect(() => load({ scheduler: { activeMemoryManager: { policies } } })).toThrow(
      /activeMemoryManager\.policies\[1\] must not name \S*: retireWorkers adds it, one for each worker that leaves, and it leaves by itself; remove the entry/,
    );
  });

  it('is let through as a class, which the manager refuses when it meets it', () => {
    const policies = [RetireWorker];
    expect(load({ scheduler: { activeMemoryManager: { policies } } })).toBeDefined();
  });
});
