import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, LocalCluster } from '../../../adapters/app/index.ts';
import { definePlugin, type ParametersSchema } from '../../../core/api/index.ts';

let cluster: LocalCluster;
let client: Client;

beforeAll(async () => {
  cluster = await LocalCluster.start({ workers: 1, mode: 'inline' });
  client = await cluster.client();
});

afterAll(() => cluster.close());

const greeter = definePlugin({
  name: 'greeter',
  apiVersion: 1,
  setup(context) {
    context.command(
      'greet',
      {
        parameters: {
          type: 'object',
          properties: { name: { type: 'string' }, times: { type: 'integer', default: 1 } },
          required: ['name'],
        },
      },
      ({ name, times }) => `hello ${name.trim()}`.repeat(times),
    );
  },
});

describe('a command with declared parameters', () => {
  it('refuses a parameter that it does not have, whichever built-in command it is', async () => {
    const names: readonly string[] = await client.command('commands');
    expect(names.length).toBeGreaterThan(80);
    for (const command of names) {
      await expect(client.command(command, { unheardOf: 1 }), command).rejects.toMatchObject({
        code: 'ERR_PROTOCOL',
        message: expect.stringContaining(
          `the command "${command}": unheardOf is not known`,
        ) as string,
        data: { command, option: 'unheardOf' },
      });
    }
  });

  it('names the nearest parameter, or all that there are', async () => {
    await expect(client.command('story', { key: ['x'] })).rejects.toThrow(
      'the command "story": key is not known; did you mean "keys"?',
    );
    await expect(client.command('identity', { key: 'x' })).rejects.toThrow('; there are none');
  });

  it('names a parameter that is missing or of another type', async () => {
    await expect(client.command('why')).rejects.toThrow(
      'the command "why": key must be text (got nothing)',
    );
    await expect(client.command('story', { keys: [1] })).rejects.toThrow(
      'the command "story": keys[0] must be text (got 1)',
    );
    await expect(client.command('story', ['x'])).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
  });

  it('takes null and undefined as not given', async () => {
    expect(await client.command('story', { keys: null })).toEqual([]);
  });
});

describe('a command of a plugin', () => {
  it('gets checked parameters with defaults', async () => {
    await cluster.scheduler.addPlugin(greeter);
    expect(await client.command('greeter.greet', { name: 'x' })).toBe('hello x');
    await expect(client.command('greeter.greet', { nam: 'x' })).rejects.toThrow(
      'the command "greeter.greet": nam is not known; did you mean "name"?; name must be text (got nothing)',
    );
  });

  it.each([
    [{ type: 'object', properties: { name: { type: 'text' } } }, 'a JSON schema that is not valid'],
    [{ name: 'string' }, 'something else than a JSON schema of type "object"'],
  ])('with %j for its parameters is refused', async (schema, what) => {
    const plugin = definePlugin({
      name: 'mistaken',
      apiVersion: 1,
      setup: (context) => {
        context.command('x', { parameters: schema as ParametersSchema }, () => 0);
      },
    });
    await expect(cluster.scheduler.addPlugin(plugin)).rejects.toThrow(
      `declares the parameters of the command "x" by ${what}`,
    );
  });

  it.each([
    [
      { type: 'object', properties: {} },
      'with "type"; there are access and parameters: write { parameters: … } around the schema',
    ],
    [{ acess: 'client' }, 'with "acess"; there are access and parameters'],
    ['client', 'by "client": write context.command('],
  ])('that is declared by %j is refused', async (declaration, what) => {
    const plugin = definePlugin({
      name: 'mistaken',
      apiVersion: 1,
      setup: (context) => context.command('x', declaration as object, () => 0),
    });
    await expect(cluster.scheduler.addPlugin(plugin)).rejects.toThrow(
      `declares the command "x" ${what}`,
    );
  });

  it('with the access of nobody is refused', async () => {
    const plugin = definePlugin({
      name: 'mistaken',
      apiVersion: 1,
      setup: (context) => context.command('x', { access: 'owner' as 'admin' }, () => 0),
    });
    await expect(cluster.scheduler.addPlugin(plugin)).rejects.toThrow(
      'declares the access of the command "x" as "owner": it is one of any, worker, viewer, client, admin',
    );
  });
});
