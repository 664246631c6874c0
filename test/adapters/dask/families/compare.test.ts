import { expect, it } from 'vitest';
import { compare, count, type Counts, type Outcome, type Verdict } from './compare.ts';

const about = { family: 'arrays', case: 'sum', seconds: 1, mark: null };

function verdictOf(
  stock: Partial<Outcome> | undefined,
  ours: Partial<Outcome> | undefined,
): Verdict {
  const [comparison] = compare(
    stock === undefined ? [] : [{ ...about, ...stock }],
    ours === undefined ? [] : [{ ...about, ...ours }],
  );
  return comparison!.verdict;
}

it.each<[Partial<Outcome> | undefined, Partial<Outcome> | undefined, Verdict]>([
  [{ value: [1, 'a'] }, { value: [1, 'a'] }, 'equal'],
  [{ value: null }, { value: null }, 'equal'],
  [{ value: 1 }, { value: 2 }, 'different'],
  [{ value: 1 }, { error: ['E', 'text'] }, 'only ours fails'],
  [{ value: 1 }, undefined, 'only ours fails'],
  [{ error: ['E', 'text'] }, { value: 1 }, 'only stock fails'],
  [{ error: ['E', 'text'] }, { error: ['E', 'text'] }, 'both fail'],
  [{ error: ['E', 'text'] }, { error: ['E', 'other'] }, 'different'],
  [
    { value: 1, mark: { why: 'w', ours: 2 } },
    { value: 2, mark: { why: 'w', ours: 2 } },
    'on purpose',
  ],
  [
    { value: 1, mark: { why: 'w', ours: 2 } },
    { value: 3, mark: { why: 'w', ours: 2 } },
    'different',
  ],
  [{ value: 1, mark: { why: 'w', ours: 2 } }, { value: 1, mark: { why: 'w', ours: 2 } }, 'equal'],
  [{ error: ['E', 'text'], mark: { why: 'w' } }, { value: 2, mark: { why: 'w' } }, 'on purpose'],
  [{ value: 1, mark: { why: 'w' } }, { value: 2, mark: { why: 'w' } }, 'different'],
  [
    { value: 1, mark: { why: 'w', ours: 2 } },
    { error: ['E', 'text'], mark: null },
    'only ours fails',
  ],
  [{ error: ['E', 'text'], mark: { why: 'w' } }, { error: ['F', 'text'], mark: null }, 'different'],
  [{ skipped: 'no library' }, { value: 1 }, 'different'],
  [{ skipped: 'no library' }, { skipped: 'no library' }, 'skipped'],
])('%j of the stock scheduler and %j of ours are judged as %s', (stock, ours, verdict) => {
  expect(verdictOf(stock, ours)).toBe(verdict);
});

it('differences count as failed, and cases that fail under the stock scheduler as skipped', () => {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const verdicts: Verdict[] = [
    'equal',
    'on purpose',
    'different',
    'only ours fails',
    'both fail',
    'only stock fails',
  ];
  count(
    verdicts.map((verdict) => ({ name: 'arrays/sum', verdict })),
    counts,
  );
  expect(counts).toEqual({ passed: 2, failed: 2, skipped: 2 });
});
