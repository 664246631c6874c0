import { expect, it } from 'vitest';

import { MemoryStore } from '../../../adapters/stores/index.ts';

it('a store gives back what was put in and knows its bytes', () => {
  const store = new MemoryStore();
  store.set('a', new Uint8Array(3));
  store.set('b', new Uint8Array(5));
  store.set('a', new Uint8Array(4));
  expect(store.nbytes).toBe(9);
  expect([...store.keys()]).toEqual(['a', 'b']);
  expect(store.get('a')).toEqual(new Uint8Array(4));
  expect(store.delete('a')).toBe(true);
  expect(store.delete('a')).toBe(false);
  expect(store.get('a')).toBeUndefined();
  expect(store.nbytes).toBe(5);
});
