import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { PAGE_POLICIES, PAGE_WORKLOADS, rowsOf, runsOf } from './policies-page.ts';

const page = readFileSync(new URL('../../docs/policies-compared.md', import.meta.url), 'utf8');

it('the page has every workload and every policy', () => {
  for (const name of Object.keys(PAGE_WORKLOADS)) expect(page).toContain(`\n## ${name}\n`);
  for (const policies of PAGE_POLICIES) expect(page).toContain(`\n| ${policies} | `);
});

it.each(['tree:8@100ms,10MB', 'wordbag:30'])(
  'the rows of %s are what the generator makes now (otherwise: npm run lab:page)',
  async (workload) => {
    const [, section = ''] = page.split(`\n## ${workload}\n`);
    const policies = ['default', 'workerSelection/balanced', 'queuing/family'];
    for (const row of rowsOf(await runsOf(workload, policies))) expect(section).toContain(row);
  },
  120_000,
);
