import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { textLogger } from '../../../adapters/app/text-log.ts';
import { SLOT_NAMES, type SlotName } from '../../../core/api/index.ts';
import { builtins } from '../../../adapters/app/builtin-extensions.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { add, square } from '../cli/fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-policies-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Every built-in policy of a slot, found in the table itself. */
async function builtinPolicies(): Promise<(readonly [SlotName, string])[]> {
  const found: (readonly [SlotName, string])[] = [];
  for (const [name, load] of Object.entries(builtins)) {
    const { kind, slot } = (await load()) as { kind?: string; slot?: SlotName };
    if (kind === 'policy' && slot !== undefined && SLOT_NAMES.includes(slot)) {
      // A name that two slots have stands as `slot/name`.
      found.push([slot, name.replace(`${slot}/`, '')]);
    }
  }
  return found;
}

const all = await builtinPolicies();

test('every slot has several built-in policies', () => {
  for (const slot of SLOT_NAMES) {
    expect(all.filter(([of]) => of === slot).length).toBeGreaterThan(1);
  }
});

describe('a configuration file that names', () => {
  test.each(all)('%s: %s switches to it, and the result is right', async (slot, name) => {
    const config = join(folder, `${slot}-${name}.yaml`);
    writeFileSync(config, `scheduler:\n  validate: true\n  policies: { ${slot}: ${name} }\n`);
    const log = new MemoryLog();
    const cluster = await LocalCluster.start({ mode: 'inline', workers: 3, config, log });
    try {
      expect(cluster.scheduler.bootReport()).toContain(`${slot}: ${name}`);
      const clients = [
        await cluster.client({ name: 'one' }),
        await cluster.client({ name: 'two' }),
      ];
      const sums = clients.map((client, which) => {
        const squares = client.map(
          square,
          Array.from({ length: 24 }, (_, n) => n + 100 * which),
        );
        const parts = [0, 1, 2, 3].map((n) => client.submit(add, squares.slice(6 * n, 6 * n + 6)));
        return client.submit(add, parts);
      });
      const expected = [0, 100].map((from) =>
        Array.from({ length: 24 }, (_, n) => (n + from) ** 2).reduce((sum, x) => sum + x),
      );
      expect(await Promise.all(sums.map((sum) => sum.result()))).toEqual(expected);
      // On a busy machine everything may take long.
      const complaints = log.lines.filter((line) => !line.includes('blocked the scheduler'));
      expect(complaints).toEqual([]);
    } finally {
      await cluster.close();
    }
  });
});

test.each([
  [
    { fairness: 'weighted-fair-share' },
    { weights: { a: 0 } },
    'weights.a must be a number above 0 (got 0)',
  ],
  [{ fairness: 'weighted-fair-share' }, { by: 'team' }, 'options.by must be one of'],
  [{ fairness: 'fifo' }, { weights: {} }, 'weights is not known'],
  [
    { stealing: 'calm' },
    { horizonMs: -1 },
    'options.horizonMs must be a number of at least 0 (got -1)',
  ],
  [
    { queuing: 'family' },
    { familySize: 0 },
    'options.familySize must be a whole number of at least 1 (got 0)',
  ],
  [{ queuing: 'family' }, { workerSaturation: -1 }, 'options.workerSaturation'],
  [
    { workerSelection: 'balanced' },
    { others: 1000 },
    'options.others must be a whole number from 0 to 64 (got 1000)',
  ],
  [{ workerSelection: 'balanced' }, { latency: 'soon' }, 'options.latency'],
  [{ workerSelection: 'locality-first' }, { sources: 'x' }, 'options.sources must be one of'],
  [
    { queuing: 'fifo' },
    {},
    'fifo (built-in fifo) is a policy for fairness and cannot fill queuing',
  ],
])('%j with %j is refused: %s', async (named, options, message) => {
  const [[slot, use]] = Object.entries(named) as [[string, string]];
  const config = { scheduler: { policies: { [slot]: { use, options } } } };
  await expect(LocalCluster.start({ mode: 'inline', config })).rejects.toMatchObject({
    message: expect.stringContaining(message) as string,
  });
});

test.each([
  [
    'policy',
    'policies: { workerSelection: FILE }',
    'score(task, worker) {\n return worker.nope.size;\n}',
    'policy "broken" of slot workerSelection threw: Cannot read',
  ],
  [
    'policy that changes what it sees',
    'policies: { workerSelection: FILE }',
    "score(task) {\n task.key = 'x';\n}",
    'it tried to set "key" of the task',
  ],
  [
    'hook',
    'plugins: [FILE]',
    "workerAdded() {\n throw new Error('on purpose');\n}",
    'the hook workerAdded of plugin "broken" threw: on purpose',
  ],
])('the log says in which line a %s threw', async (what, section, method, message) => {
  const file = join(folder, `${what.replaceAll(' ', '-')}.mjs`);
  const config = join(folder, `${what.replaceAll(' ', '-')}.yaml`);
  writeFileSync(file, `export default { name: 'broken', ${method} };`);
  writeFileSync(config, `scheduler:\n  ${section.replace('FILE', file)}\n`);
  const lines: string[] = [];
  const log = textLogger('cluster', 'warn', (line) => lines.push(line));
  const cluster = await LocalCluster.start({ mode: 'inline', config, log });
  try {
    const client = await cluster.client();
    expect(await client.submit(square, 3).result()).toBe(9);
  } finally {
    await cluster.close();
  }
  expect(lines[0]).toContain(message);
  expect(lines[0]).toMatch(new RegExp(`\\[at .*${file}:2:\\d+\\)?\\]\\n$`));
});
