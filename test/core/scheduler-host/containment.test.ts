import { expect, it } from 'vitest';

import type { NewStimulus } from '../../../core/api/index.ts';
import { TestHost } from '../../kit/test-host.ts';

const RUN_SPEC = new Uint8Array([1]);

/** Passes the checks of messages, and throws when the kernel reads it for the n-th time. */
function throwingAt<T>(value: T, readsMax: number): PropertyDescriptor {
  let reads = 0;
  return {
    enumerable: true,
    get: () => {
      if (++reads === readsMax + 1) throw new Error(`a bug, at read ${reads}`);
      return value;
    },
  };
}

/** A scheduler with a worker, and a client that waits for a task of its own. */
async function crowded(): Promise<{
  host: TestHost;
  client: Awaited<ReturnType<TestHost['client']>>;
  say: (stimulus: unknown) => void;
}> {
  const host = await TestHost.start();
  await host.worker('inmemory://w1');
  const client = await host.client('c');
  host.scheduler.enqueue({
    op: 'update-graph',
    client: 'c',
    tasks: [{ key: 'mine', dependencies: [], runSpec: RUN_SPEC }],
    keys: ['mine'],
  } as unknown as NewStimulus);
  await host.settle();
  return {
    host,
    client,
    say: (stimulus) => {
      try {
        host.scheduler.enqueue(stimulus as NewStimulus);
      } catch {
        // Refused by the check of messages, which reads it first.
      }
    },
  };
}

it.each([
  ['client-releases-keys', 'keys', ['mine', 'other']],
  ['cancel-keys', 'keys', ['other']],
  ['client-desires-keys', 'keys', ['mine']],
  ['retry', 'keys', ['mine']],
  ['update-data', 'items', [{ key: 'd', workers: ['inmemory://w1'], nbytes: 1 }]],
])('a bug in the handling of %s ends no scheduler', async (op, field, value) => {
  let contained = 0;
  for (let reads = 0; reads < 12; reads++) {
    const { host, client, say } = await crowded();
    const stimulus = { op, client: 'c', keys: ['mine'], force: false, stimulusId: 'buggy' };
    Object.defineProperty(stimulus, field, throwingAt(value, reads));
    say(stimulus);
    await host.settle();
    expect([reads, host.scheduler.crash?.message]).toEqual([reads, undefined]);
    // It continues to serve.
    expect(await client.request('who-has', { keys: ['mine'] })).toBeDefined();
    contained += Number(host.log.messages.join('\n').includes('failed and was dropped'));
    await host.close();
  }
  expect(contained).toBeGreaterThan(0);
});

it('the client whose stimulus failed gets the error, and others are not concerned', async () => {
  const { host, client, say } = await crowded();
  const other = await host.client('other');
  for (let reads = 0; reads < 12; reads++) {
    const stimulus = {
      op: 'cancel-keys',
      client: 'c',
      keys: ['new'],
      force: false,
      stimulusId: 'buggy',
    };
    Object.defineProperty(stimulus, 'force', throwingAt(false, reads));
    say(stimulus);
  }
  await host.settle();
  expect(host.scheduler.crash).toBeUndefined();
  expect(client.received).toContainEqual(
    expect.objectContaining({ op: 'cancelled-keys', keys: ['new'], reason: 'stimulus-failed' }),
  );
  expect(other.received.filter(({ op }) => op === 'cancelled-keys')).toEqual([]);
  expect(host.log.messages.join('\n')).toContain(
    '(cancel-keys) of c about new failed and was dropped: a bug',
  );
  await host.close();
});
