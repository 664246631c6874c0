import { expect, it } from 'vitest';
import { withoutOwnNames } from '../../../adapters/cli/terminal.ts';

it('a field called like one that every line has is put apart, so that no name is in a line twice', () => {
  expect(withoutOwnNames({ name: 'worker-1', pid: 7, address: 'tcp://x' })).toEqual({
    address: 'tcp://x',
    about: { name: 'worker-1', pid: 7 },
  });
  const fields = { address: 'tcp://x' };
  expect(withoutOwnNames(fields)).toBe(fields);
});
