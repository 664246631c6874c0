import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { ProfileAnswer } from '../../../adapters/dashboard/page-messages.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { startCluster } from './bench.ts';
import { hasBrowser, openPage, startBrowser } from './browser.ts';
import { outer, spin } from './fixtures/tasks.mjs';

describe('the profile of running tasks', () => {
  let cluster: LocalCluster;
  let client: Client;
  let at: string;
  beforeAll(async () => {
    ({ cluster, at } = await startCluster({}, { mode: 'threads', workers: 2 }));
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  const profile = async (): Promise<ProfileAnswer> =>
    (await (await fetch(`${at}/api/profile`)).json()) as ProfileAnswer;
  /** How often calls below a prefix were seen, by their names with their callers'. */
  const countsIn = async (prefix: string): Promise<ReadonlyMap<string, number>> => {
    const { tree } = await profile();
    const root = tree.children.find(({ name }) => name === prefix);
    const found = new Map<string, number>();
    const visit = (node: typeof tree): void => {
      for (const child of node.children) {
        const call = `${node.name} > ${child.name}`;
        found.set(call, (found.get(call) ?? 0) + child.count);
        visit(child);
      }
    };
    if (root !== undefined) visit(root);
    return found;
  };
  const callsIn = async (prefix: string): Promise<readonly string[]> => [
    ...(await countsIn(prefix)).keys(),
  ];

  it('names the functions in which a task computes, also while it does not give way', async () => {
    const { tree, workers } = await profile();
    expect(workers).toBe(2);
    expect(tree.name).toBe('all tasks');
    const long = client.with({ key: 'long-1' }).submit(outer, 60_000);
    await expect.poll(() => callsIn('long')).toContain('outer > inner');
    expect(await callsIn('long')).toContain('long > outer');
    expect(long.status).toBe('pending');
  });

  it('names the function of a loop as long as it runs, however often the profile is read', async () => {
    const loop = client.with({ key: 'loop-1' }).submit(outer, 60_000);
    // The engine compiles the loop in its first tenths of a second.
    const counts = async (): Promise<number> => (await countsIn('loop')).get('outer > inner') ?? 0;
    await expect.poll(counts).toBeGreaterThan(100);
    expect(loop.status).toBe('pending');
    loop.cancel();
  });

  it('tells the tasks of prefixes apart', async () => {
    let runs = 0;
    const callsWithMore = async (): Promise<readonly string[]> => {
      await client
        .with({ key: `short-${runs++}` })
        .submit(spin, 200)
        .result();
      return callsIn('short');
    };
    await expect.poll(callsWithMore).toContain('short > spin');
    expect((await callsIn('short')).join()).not.toContain('outer');
  });

  it.skipIf(!hasBrowser)(
    'shows the call stack of a task that runs, and those of a worker',
    async () => {
      const running = client.with({ key: 'still-1' }).submit(outer, 60_000);
      await expect.poll(() => callsIn('still')).toContain('outer > inner');
      const browser = await startBrowser();
      try {
        const page = await openPage(browser);
        await page.goto(`${at}/status?task=still-1`);
        const lines =
          /^still-1, for [^\n]+\n +inner \(\/[^\n]*\/tasks\.mjs:\d+\)\n +outer \(\/[^\n]*\/tasks\.mjs:\d+\)$/m;
        const stack = page.getByRole('dialog').getByLabel('Call stack');
        await expect.poll(() => stack.innerText()).toMatch(lines);
        const { running: stacks } = await client.callStack([running]);
        await page.goto(`${at}/workers?worker=${encodeURIComponent(stacks[0]!.worker)}`);
        await page.getByRole('button', { name: 'Call stacks' }).click();
        await expect.poll(() => page.getByLabel('Answer of the worker').innerText()).toMatch(lines);
      } finally {
        await browser.close();
      }
    },
  );
});
