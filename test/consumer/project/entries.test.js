import { expect, it } from 'vitest';
import manifest from 'yardmaster/package.json' with { type: 'json' };

const entries = Object.entries(manifest.exports).filter(([, target]) => typeof target === 'object');

it.each(entries)('the entry %s can be imported', async (path) => {
  expect(await import(`yardmaster${path.slice(1)}`)).toBeDefined();
});

it('helpers of our own extensions are in no entry', async () => {
  for (const [path] of entries) {
    const names = Object.keys(await import(`yardmaster${path.slice(1)}`));
    const inner = ['MinHeap', 'SteadyMap', 'TurnBudget', 'fetchData', 'inBackground', 'comeBack'];
    expect(names.filter((name) => inner.includes(name))).toEqual([]);
  }
});
