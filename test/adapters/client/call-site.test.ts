/** Where something was submitted, and what is kept for it. */
import { expect, it } from 'vitest';

import { type Client, type Future, LocalCluster } from '../../../adapters/app/index.ts';
import { callSite, submittedAt } from '../../../adapters/client/call-site.ts';
import { collectGarbage } from '../../../adapters/executors/collect-garbage.ts';
import { increment } from '../../bench/no-op.ts';
import { eventually } from '../../kit/eventually.ts';

it('is the line of the caller, as text', () => {
  const site = callSite(increment);
  expect(site.stack).toEqual(expect.any(String));
  expect(submittedAt(site)).toContain('call-site.test.ts');
});

it('is nothing where a tool makes something else of stacks', () => {
  const { prepareStackTrace } = Error;
  try {
    Error.prepareStackTrace = (_, frames) => frames;
    expect(submittedAt(callSite(() => 1))).toBe('');
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
  }
});

class Application {
  future: Future<number> | undefined;

  begin(client: Client): void {
    this.future = client.submit(increment, 1);
  }

  async end(client: Client): Promise<void> {
    await client.close();
  }
}

it('an object that keeps a future which one of its methods has submitted is garbage when nothing else refers to it, and the result goes', async () => {
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
  const client = await cluster.client();
  const begin = async (): Promise<WeakRef<Application>> => {
    const application = new Application();
    application.begin(client);
    await application.future?.result();
    return new WeakRef(application);
  };
  const reference = await begin();
  expect(cluster.scheduler.cluster.tasks.size).toBe(1);
  await eventually(() => {
    collectGarbage();
    expect(reference.deref() === undefined).toBe(true);
    expect(cluster.scheduler.cluster.tasks.size).toBe(0);
  });
});

it('so is one whose method has closed the client', async () => {
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
  const used = async (): Promise<WeakRef<Application>> => {
    const application = new Application();
    const client = await cluster.client();
    application.begin(client);
    // Until then the engine is not asked to watch the future.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await application.end(client);
    return new WeakRef(application);
  };
  const reference = await used();
  await cluster.client(); // Then the cluster forgets those that are closed.
  await eventually(() => {
    collectGarbage();
    expect(reference.deref() === undefined).toBe(true);
  });
});
