import { expect, test } from 'vitest';
import { RunReader, RunWriter } from '../../../adapters/executors/threads/run-queue.ts';
import type { FunctionSpec } from '../../../core/api/index.ts';

const WHOLE = {
  module: 'file:///tasks.js',
  name: 'work',
  version: '1',
  args: new Uint8Array([1, 2, 3]),
};
/** A value for each other field of a task: a new field without one does not compile. */
const OTHERS: Required<Omit<FunctionSpec, keyof typeof WHOLE>> = {
  definition: '0123456789abcdef',
  basis: 'fedcba9876543210',
  retry: { times: 1, backoffMs: 0, factor: 1, jitter: 0 },
  each: [0],
  persist: { store: { folder: '/store' }, key: 'key' },
};
/** The scheduler compares definitions, and threads never read them. */
const UNREAD = ['definition', 'basis'];

/** The task as the thread has it. */
function received(runSpec: object): unknown {
  const posted = new RunWriter().write(0, [{ key: 'a', runSpec, inputs: new Map() }], []);
  return new RunReader().read(structuredClone(posted))[0]?.runSpec;
}

test.each(Object.entries(OTHERS).filter(([field]) => !UNREAD.includes(field)))(
  'a task with %s arrives in its thread as it is',
  (field, value) => {
    expect(received({ ...WHOLE, [field]: value })).toEqual({ ...WHOLE, [field]: value });
    expect(received({ ...WHOLE, ...OTHERS, [field]: value })).toMatchObject({ [field]: value });
  },
);

test('a task with nothing but a call arrives in its thread as it is', () => {
  expect(received(WHOLE)).toEqual(WHOLE);
  expect(received({ ...WHOLE, definition: OTHERS.definition })).toEqual(WHOLE);
  expect(received({ ...WHOLE, basis: OTHERS.basis })).toEqual(WHOLE);
});
