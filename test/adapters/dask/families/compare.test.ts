import { expect, it } from 'vitest';
import { compare, count, type Counts, type Outcome, type Verdict } from './compare.ts';

const about = { family: 'arrays', case: 'sum', seconds: 1, differs: null };

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
  [{ value: 1, differs: 'why' }, { value: 2, differs: 'why' }, 'on purpose'],
  [{ skipped: 'no library' }, { skipped: 'no library' }, 'skipped'],
])('%j of the stock scheduler and %j of ours are judged as %s', (stock, ours, verdict) => {
  expect(verdictOf(stock, ours)).toBe(verdict);
});

it('differences count as failed, and cases that fail under both schedulers as skipped', () => {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const verdicts: Verdict[] = ['equal', 'on purpose', 'different', 'only ours fails', 'both fail'];
  count(
    verdicts.map((verdict) => ({ name: 'arrays/sum', verdict })),
    counts,
  );
  expect(counts).toEqual({ passed: 2, failed: 2, skipped: 1 });
});
