import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { LogBook } from '../../../core/host/log.ts';
import { MemoryLog } from '../../kit/test-host.ts';

it('passes every line on, and keeps the newest thousand from info up', () => {
  const log = new MemoryLog();
  const book = new LogBook(log, new VirtualClock(5), inspect);
  book.debug({}, 'not kept');
  for (let n = 0; n < 1003; n++) book.info({ n }, `line ${n}`);
  expect(log.lines).toHaveLength(1004);
  expect(book.lines()).toHaveLength(1000);
  expect(book.lines(2)).toEqual([
    { atMs: 5, level: 'info', message: 'line 1001', fields: '{ n: 1001 }' },
    { atMs: 5, level: 'info', message: 'line 1002', fields: '{ n: 1002 }' },
  ]);
});

it('keeps a text of whatever was logged, which can travel', () => {
  const book = new LogBook(new MemoryLog(), new VirtualClock(), inspect);
  const hostile = { nested: { long: 'x'.repeat(10_000) }, half: '\ud83d' };
  book.warn(hostile, 'cut \ud83d');
  book.error({ err: new Error('boom') });
  const [first, second] = book.lines();
  expect(first?.fields.length).toBeLessThanOrEqual(4000);
  expect(first?.message).toBe('cut \ufffd');
  expect(second).toMatchObject({ level: 'error', message: '' });
  expect(second?.fields).toContain('Error: boom');
});
