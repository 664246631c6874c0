import { inspect } from 'node:util';

import { expect, it } from 'vitest';

import type { WireMessage } from '../../../core/api/index.ts';
import { startHost } from '../../kit/test-host.ts';

const SECRET = 'only the first one knows this';
const OTHER = 'the second one knows only this';
const SPEC = { module: 'm', name: 'f', version: '1', args: new Uint8Array() };

const graphOf = (...keys: string[]): WireMessage => ({
  op: 'update-graph',
  tasks: keys.map((key) => ({ key, dependencies: [], runSpec: SPEC })),
  keys,
});

const returning = (secret?: string): object => ({
  returnWithinMs: 10_000,
  secret,
});

it.each(['connected', 'disconnected'])(
  'a client that knows the name of one that is %s cannot take its place, and the rightful one can',
  async (state) => {
    const host = await startHost();
    const first = await host.client('c', returning(SECRET));
    await first.send(graphOf('x'));
    if (state === 'disconnected') first.channel.abort(new Error('the network is down'));
    await host.settle();
    for (const secret of [OTHER, undefined]) {
      await expect(host.client('c', returning(secret))).rejects.toMatchObject({
        code: 'ERR_REGISTRATION',
        message: 'there is a client "c" already; choose another name',
      });
    }
    expect(first.closedWith === undefined).toBe(state === 'connected');
    await host.client('c', returning(SECRET));
    const { clients } = host.scheduler.cluster;
    expect([...(clients.get('c')?.wantsWhat ?? [])].map(({ key }) => key)).toEqual(['x']);
  },
);

it('a client that has given no secret cannot come back', async () => {
  const host = await startHost();
  const first = await host.client('c', returning());
  await expect(host.client('c', returning())).rejects.toMatchObject({ code: 'ERR_REGISTRATION' });
  first.channel.abort(new Error('the network is down'));
  await host.settle();
  expect(host.scheduler.cluster.clients.has('c')).toBe(false);
});

it('a worker that knows address, name and id of another one cannot take its place, and the rightful one can', async () => {
  const host = await startHost();
  const first = await host.worker('inmemory://w1', { name: 'one' }, { secret: SECRET });
  const client = await host.client('c');
  await client.send(graphOf('x'));
  for (const more of [{ secret: OTHER }, {}]) {
    await expect(host.worker('inmemory://w1', { name: 'one' }, more)).rejects.toMatchObject({
      code: 'ERR_REGISTRATION',
      data: { field: 'address' },
    });
  }
  expect(first.closedWith).toBeUndefined();
  expect(first.ops()).toEqual(['compute-task']);
  const again = await host.worker('inmemory://w1', { name: 'one' }, { secret: SECRET });
  expect(again.ops()).toEqual(['compute-task']);
  expect(first.closedWith).toBeInstanceOf(Error);
});

it('no command, event, error or log line shows a secret', async () => {
  const host = await startHost();
  await host.worker('inmemory://w1', {}, { secret: SECRET });
  const client = await host.client('c', returning(SECRET));
  await host.client('c', returning(OTHER)).catch(() => undefined);
  const tooShort = 'short secret';
  const refused: unknown = await host
    .client('d', returning(tooShort))
    .catch((error: unknown) => error);
  const shown: unknown[] = [refused, host.log.lines];
  for (const command of ['identity', 'dump-state', 'events', 'logs', 'connections']) {
    shown.push(await client.request('command', { command, parameters: {} }));
  }
  const text = inspect(shown, {
    depth: Infinity,
    maxArrayLength: Infinity,
    maxStringLength: Infinity,
  });
  expect(text).toContain('inmemory://w1');
  expect(text).toContain('secret must NOT have fewer than 22 characters');
  for (const secret of [SECRET, OTHER, tooShort]) expect(text).not.toContain(secret);
});
