import { expect, it } from 'vitest';
import { ScatteredData } from '../../../core/scheduler-host/data-reservations.ts';

it('names of data that was released do not count any more, while the client keeps other data', () => {
  const data = new ScatteredData(Infinity, () => true);
  data.reserve('ann', ['kept'], ['f'], [1]);
  const fingerprint = 'f'.repeat(8 * 1024 * 1024);
  for (let round = 0; round < 20; round++) {
    data.reserve('ann', [`k${round}`], [fingerprint], [1]);
    data.release('ann', [`k${round}`]);
  }
  const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
  const reserve = (): void =>
    data.reserve(
      'ann',
      names,
      names.map(() => fingerprint),
      [],
    );
  expect(reserve).toThrow(/occupy more than/);
});
