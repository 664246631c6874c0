import { expect, it } from 'vitest';
import { Topics } from '../../../plugins/coordination/topics.ts';
import { Budget } from '../../../plugins/coordination/wait-queue.ts';

it('a client whose first subscription is refused is no subscriber', () => {
  let observers = 0;
  const scope = { budget: new Budget(300), departures: { add: () => () => undefined } };
  const topics = new Topics(scope as never, () => {
    observers++;
    return () => {
      observers--;
    };
  });
  expect(() => topics.subscribe('c', 'topic')).toThrow('a subscription to "topic"');
  expect(observers).toBe(0);
});
