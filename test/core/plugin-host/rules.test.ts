/** Rules come from configurations and from plugins, beside the policies of the slots. */
import { describe, expect, it } from 'vitest';
import { definePlugin, defineRule, type Rule } from '../../../core/api/index.ts';
import { startHost, type TestHost } from '../../kit/test-host.ts';

const zone = defineRule({
  name: 'zone',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['letter'],
    properties: { letter: { type: 'string' } },
  },
  create: ({ letter }) => ({ filter: (_task, { name }) => name.includes(letter) }),
});

class Cheapest implements Rule {
  static readonly optionsSchema = {
    type: 'object',
    properties: { unit: { type: 'number', default: 1 } },
  };
  constructor(private readonly options: { readonly unit: number }) {}
  score(_task: unknown, { nbytes }: { readonly nbytes: number }): number {
    return this.options.unit * nbytes;
  }
}

const startWith = (...rules: unknown[]): Promise<TestHost> =>
  startHost({ policies: { rules: rules as never } });

describe('a configuration', () => {
  it('names rules as definitions, classes and objects, each with options and a weight', async () => {
    const host = await startWith(
      { use: zone, options: { letter: 'n' } },
      { use: Cheapest, weight: 2.5 },
      { use: { name: 'quiet', holds: () => false } },
    );
    expect(host.scheduler.policies.current).toMatchObject({ rules: 'zone, Cheapest, quiet' });
    expect(host.scheduler.bootReport()).toContain('- rules: zone, Cheapest, quiet');
    expect(host.scheduler.bootReport()).toContain('- workerSelection: locality-first');
  });

  it('without rules has no line about them', async () => {
    const host = await startHost();
    expect(host.scheduler.policies.current).not.toHaveProperty('rules');
  });

  it.each<[string, object, RegExp]>([
    ['an option that is missing', { use: zone }, /policies\.rules\[0\]\.options\.letter/],
    ['a weight below 0', { use: Cheapest, weight: -1 }, /policies\.rules\[0\]\.weight must be/],
    ['an unknown field', { use: Cheapest, wieght: 1 }, /wieght.*weight/],
  ])('refuses %s, and says where', async (_what, entry, message) => {
    await expect(startWith(entry)).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringMatching(message) as string,
    });
  });

  it('refuses a rule in the place of a policy, and says where it belongs', async () => {
    await expect(startHost({ policies: { fairness: { use: zone } } })).rejects.toMatchObject({
      message: expect.stringContaining('name it under scheduler.policies.rules') as string,
    });
  });
});

describe('a plugin', () => {
  const quota = definePlugin({
    name: 'quota',
    apiVersion: 1,
    setup: ({ providePolicy }) => providePolicy('rules', { holds: ({ key }) => key === 'held' }),
  });

  it('adds a rule under its own name, for as long as it is there', async () => {
    const host = await startHost({
      policies: { rules: [{ use: zone, options: { letter: 'n' } }] },
      plugins: [{ use: quota }],
    });
    expect(host.scheduler.policies.current).toMatchObject({ rules: 'zone, quota' });
    await host.scheduler.removePlugin('quota');
    expect(host.scheduler.policies.current).toMatchObject({ rules: 'zone' });
  });

  it('cannot add what is no rule', async () => {
    const wrong = definePlugin({
      name: 'wrong',
      apiVersion: 1,
      setup: ({ providePolicy }) => providePolicy('rules', { hold: () => true } as never),
    });
    await expect(startHost({ plugins: [{ use: wrong }] })).rejects.toMatchObject({
      message: expect.stringMatching(
        /cannot be a rule: it has "hold".*did you mean "holds"/,
      ) as string,
    });
  });
});
