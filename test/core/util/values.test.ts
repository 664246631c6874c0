import { expect, it } from 'vitest';

import { countOf } from '../../../core/util/values.ts';

it('one thing is named in the singular, and large numbers are grouped', () => {
  expect(countOf(1, 'worker')).toBe('1 worker');
  expect(countOf(0, 'worker')).toBe('0 workers');
  expect(countOf(120_000, 'worker')).toBe('120,000 workers');
  expect(countOf(1, 'task waits', 'tasks wait')).toBe('1 task waits');
  expect(countOf(2, 'copy', 'copies')).toBe('2 copies');
});
