import { describe, expect, it } from 'vitest';
import { definePlugin, definePolicy, type SlotName } from '../../../core/api/index.ts';
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

  it('with the nearest name for two letters that changed places, in a plain object', async () => {
    const { message } = await refusal('workerSelection', { scroe: nothing });
    expect(message).toContain('it has "scroe", which nothing asks for; did you mean "score"?');
    const classed = await refusal('workerSelection', classWith({ scroe: nothing }));
    expect(classed.message).toContain(
      'it has no method score or select, but "scroe"; did you mean "score"?',
    );
  });

  it('and so is a misspelt flag', async () => {
    const { message } = await refusal('fairness', { ...LEAST.fairness, isPerTsk: true });
    expect(message).toContain(
      'it has "isPerTsk", which nothing asks for; did you mean "isPerTask"?',
    );
  });

  it('and one in a plain object that is like none', async () => {
    const { message } = await refusal('fairness', { ...LEAST.fairness, onGraph: nothing });
    expect(message).toContain(
      'there are isPerTask, generations, taskOver, snapshot, restore; a method of its own begins',
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

describe('a flag or a method of a policy has its type', () => {
  it.each<[SlotName, string, unknown, string]>([
    ['workerSelection', 'reach', 'everything', '"all" or { holders, others }'],
    ['workerSelection', 'reach', { holders: -1, others: 2 }, '"all" or { holders, others }'],
    ['workerSelection', 'reach', { holders: 0, others: 0 }, '"all" or { holders, others }'],
    ['workerSelection', 'placesRootish', 'no', 'true or false'],
    ['workerSelection', 'admits', true, 'a function'],
    ['queuing', 'holdsBack', 1, 'true or false'],
    ['queuing', 'leavesPlacement', 'yes', 'true or false'],
    ['fairness', 'isPerTask', 1, 'true or false'],
    ['stealing', 'pays', 3, 'a function'],
  ])('for %s: %s', async (slot, name, value, wanted) => {
    const { code, message } = await refusal(slot, { ...LEAST[slot], [name]: value });
    expect(code).toBe('ERR_SLOT');
    expect(message).toContain(`its ${name} must be ${wanted}`);
  });

  it('select and pickFromPool exclude each other', async () => {
    const policy = { select: nothing, pickFromPool: nothing };
    expect((await refusal('workerSelection', policy)).message).toContain(
      'it has both select and pickFromPool',
    );
  });
});

describe('a definition of a policy is checked field by field', () => {
  it.each<[string, object, string]>([
    ['no create', { create: undefined }, 'create must be a function (got nothing)'],
    ['no name', { name: undefined }, 'name must be'],
    ['a misspelt field', { optionSchema: {} }, 'did you mean "optionsSchema"?'],
    [
      'create that returns nothing',
      { create: nothing },
      'create of own from own given in code returned nothing',
    ],
    [
      'create that returns a promise',
      { create: () => Promise.resolve(LEAST.ordering) },
      'returned a promise',
    ],
    ['create that returns an empty object', { create: () => ({}) }, 'it has no method order'],
  ])('%s', async (_, wrong, says) => {
    const given = {
      ...definePolicy('ordering', { name: 'own', apiVersion: 1, create: nothing as never }),
      ...wrong,
    };
    expect((await refusal('ordering', given)).message).toContain(says);
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
  it.each<[string, SlotName, string | object]>([
    ['by a built-in one', 'ordering', 'dask'],
    [
      'by a definition without a schema',
      'ordering',
      definePolicy('ordering', {
        name: 'own',
        apiVersion: 1,
        create: () => LEAST.ordering as never,
      }),
    ],
    ['by an object', 'stealing', { mayTake: () => true }],
  ])('%s', async (_, slot, policy) => {
    const error = await refusal(slot, policy, { a: 1 });
    expect(error).toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringMatching(/options\.a is not known: .* declares no options/) as string,
    });
  });

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
