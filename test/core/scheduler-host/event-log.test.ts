import { expect, it } from 'vitest';

import { configuration } from '../../../adapters/app/config.ts';
import { EventLog } from '../../../core/scheduler-host/event-log.ts';

const KIB = 1024;

function logOf(eventLogLength: number, events = '64 KiB'): EventLog {
  return new EventLog(
    configuration.loadObject({ scheduler: { eventLogLength, limits: { events } } }).config,
  );
}

const messages = (log: EventLog, topic: string): unknown[] =>
  log.of(topic).map(({ message }) => message);

it('each topic remembers its latest events, oldest first', () => {
  const log = logOf(3);
  for (let index = 0; index < 5; index++) log.publish('a', index, index);
  expect(messages(log, 'a')).toEqual([2, 3, 4]);
  expect(log.summary()).toEqual([['a', 5]]);
});

it('when all topics occupy too much, the largest one forgets its oldest events, and small ones nothing', () => {
  const log = logOf(1000);
  log.publish('small', 'kept', 0);
  for (let index = 0; index < 500; index++) {
    log.publish('large', { index, text: 'x'.repeat(KIB) }, index);
  }
  expect(messages(log, 'small')).toEqual(['kept']);
  const left = messages(log, 'large') as { index: number }[];
  expect(left.length).toBeGreaterThan(20);
  expect(left.length).toBeLessThan(64);
  expect(left.map(({ index }) => index)).toEqual(left.map((_, k) => 500 - left.length + k));
});

it('events that replace others in a full topic do not count twice', () => {
  const log = logOf(2);
  for (let index = 0; index < 200; index++) log.publish('ring', 'x'.repeat(KIB), index);
  expect(log.of('ring')).toHaveLength(2);
});

it('one event that alone is larger than the limit is forgotten, and so are topics with very long names', () => {
  const log = logOf(10);
  log.publish('a', 'x'.repeat(100 * KIB), 0);
  expect(log.of('a')).toEqual([]);
  for (let index = 0; index < 20; index++) log.publish(`${'n'.repeat(10 * KIB)}${index}`, 1, 0);
  expect(log.summary().length).toBeLessThan(8);
});
