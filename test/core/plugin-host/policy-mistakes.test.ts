import { describe, expect, it } from 'vitest';
import { definePlugin, type SlotName } from '../../../core/api/index.ts';
import { startHost } from '../../kit/test-host.ts';

async function refusal(
  slot: SlotName,
  policy: string | object,
  options?: Record<string, unknown>,
): Promise<{ code: string; message: string }> {
  const host = await startHost();
  const error: unknown = await host.scheduler
    .replacePolicy(slot, policy, options)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  return error as { code: string; message: string };
}

const nothing = (): undefined => undefined;

/** The least that fills each slot. */
const LEAST: Readonly<Record<SlotName, object>> = {
  workerSelection: { score: () => 1 },
  queuing: { holdsBack: false, isRootish: () => false, slotLimit: () => 1, selectRootish: nothing },
  ordering: { order: nothing },
  fairness: { generations: () => 1 },
  stealing: { mayTake: () => true },
};

/** A class whose instances have these methods. */
function classWith(methods: object): object {
  return Object.create(
    Object.create(Object.prototype, Object.getOwnPropertyDescriptors(methods)) as object,
  ) as object;
}

describe('a method of a policy that nothing would ask for is refused', () => {
  it.each<[SlotName, string, string]>([
    ['workerSelection', 'admit', 'admits'],
    ['workerSelection', 'pick_from_pool', 'pickFromPool'],
    ['workerSelection', 'prepares', 'prepare'],
    ['queuing', 'nextQueue', 'nextQueued'],
    ['queuing', 'priorityChange', 'priorityChanged'],
    ['ordering', 'orders', 'order'],
    ['fairness', 'tasksOver', 'taskOver'],
    ['stealing', 'levelOff', 'levelOf'],
    ['stealing', 'victim', 'victims'],
  ])('for %s: %s', async (slot, name, meant) => {
    const policy = { ...LEAST[slot], [name]: nothing };
    for (const given of [policy, classWith(policy)]) {
      const { code, message } = await refusal(slot, given);
      expect(code).toBe('ERR_SLOT');
      expect(message).toContain(
        `it has "${name}", which nothing asks for; did you mean "${meant}"?`,
      );
    }
  });

  it('also when a misspelt method is the one that is missing', async () => {
    expect((await refusal('ordering', { ordr: nothing })).message).toContain(
      'did you mean "order"?',
    );
  });

  it('but helpers of classes, private names, fields and methods of other slots are not', async () => {
    const host = await startHost();
    const helpful = { _admit: nothing, seen: 0, name: 'helpful', ...LEAST.ordering };
    await host.scheduler.replacePolicy('workerSelection', { ...LEAST.workerSelection, ...helpful });
    const withHelper = classWith({ ...LEAST.fairness, countClients: nothing });
    await host.scheduler.replacePolicy('fairness', withHelper);
    expect(host.scheduler.policies.current).toMatchObject({ workerSelection: 'helpful' });
  });

  it('also when a plugin fills the slot', async () => {
    const host = await startHost();
    const plugin = definePlugin({
      name: 'filler',
      apiVersion: 1,
      setup(context) {
        context.providePolicy('stealing', { mayTake: () => true, pay: nothing } as never);
      },
    });
    await expect(host.scheduler.addPlugin(plugin)).rejects.toMatchObject({
      message: expect.stringContaining('did you mean "pays"?') as string,
    });
  });
});

it('a class without a schema gets the options that are given', async () => {
  const host = await startHost();
  class Own {
    static given: unknown;
    generations = (): number => 1;
    constructor(options: unknown) {
      Own.given = options;
    }
  }
  await host.scheduler.replacePolicy('fairness', Own, { a: 1 });
  expect(Own.given).toEqual({ a: 1 });
});

describe('options that a policy does not have are refused', () => {
  it('with the place in the configuration, at the start', async () => {
    const policies = { ordering: { use: 'dask', options: { a: 1 } } };
    await expect(startHost({ policies })).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringContaining(
        'scheduler.policies.ordering.options.a is not known',
      ) as string,
    });
  });
});
