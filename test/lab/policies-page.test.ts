import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SINGLE_POLICIES } from '../../adapters/simulator/lab/variants.ts';
import { cellOf, instanceOf, PAGE_WORKLOADS } from './policies-page.ts';
import { WHAT_TO_EXPECT } from './which-policy.ts';

const page = readFileSync(new URL('../../docs/policies-compared.md', import.meta.url), 'utf8');

/** The cells of a policy in one of the tables. */
function cellsOf(chapter: string, policies: string): readonly string[] {
  const [, section = ''] = page.split(`\n#### ${chapter}\n`);
  const row = section.split('\n').find((line) => line.startsWith(`| ${policies} | `)) ?? '';
  return row
    .split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());
}

it('the page has what is written by hand, every workload and every policy', () => {
  expect(page).toContain(`\n\n${WHAT_TO_EXPECT}\n## `);
  for (const name of Object.keys(PAGE_WORKLOADS)) expect(page).toContain(`\n- \`${name}\`: `);
  for (const policies of SINGLE_POLICIES) expect(page).toContain(`\n| ${policies} | `);
});

it.each(['tree:8@100ms,10MB', 'wordbag:30'])(
  'the figures of %s are what the generator makes now (otherwise: npm run lab:page)',
  async (workload) => {
    const column = Object.keys(PAGE_WORKLOADS).indexOf(workload);
    const policies = ['workerSelection/balanced', 'queuing/root-ish'];
    const instance = await instanceOf(workload, ['default', ...policies]);
    for (const name of policies) {
      expect(cellsOf('Makespan', name)[column]).toBe(cellOf(instance, name));
    }
  },
);
