import { expect, it } from 'vitest';
import { Story } from '../../../../core/kernel/story.ts';
import { SchedulerEnv } from '../../../kit/env.ts';

it('the story of a stimulus is what it caused, oldest first', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  const stimulus = env.finish('a');
  expect(env.story(stimulus)).toEqual([
    'a processing -> memory {b: processing}',
    'b waiting -> processing {}',
  ]);
});

it('the story of a key also has what recommends something for it', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finish('a');
  expect(env.story('b')).toEqual([
    'b released -> waiting {}',
    'a processing -> memory {b: processing}',
    'b waiting -> processing {}',
  ]);
});

it('a story of nothing in particular is everything', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: [] });
  expect(env.story()).toEqual([
    'a released -> waiting {a: processing}',
    'a waiting -> processing {}',
  ]);
  expect(env.story('unknown')).toEqual([]);
});

it('a record has the time and the stimulus', () => {
  const env = new SchedulerEnv().advance(7);
  env.addWorkers(1);
  const stimulusId = env.submit({ a: [] });
  expect(env.kernel.story('a')[0]).toMatchObject({ stimulusId, atMs: 7 });
});

it('an attempt that ends where it began is recorded, too', () => {
  const env = new SchedulerEnv();
  const stimulus = env.submit({ a: [] });
  expect(env.story(stimulus)).toContain('a waiting -> waiting {a: queued}');
});

it('the story keeps the newest records', () => {
  const env = new SchedulerEnv({ kernel: { transitionLogLength: 3 } });
  env.addWorkers(1);
  env.submit({ a: [], b: ['a'] });
  env.finishAll('a', 'b');
  expect(env.story()).toEqual([
    'b waiting -> processing {}',
    'b processing -> memory {a: released}',
    'a memory -> released {}',
  ]);
});

it('a story of length 0 keeps nothing', () => {
  const env = new SchedulerEnv({ kernel: { transitionLogLength: 0 } });
  env.addWorkers(1);
  env.submit({ a: [] });
  expect(env.story()).toEqual([]);
});

it('a very wide step pushes the recommendations of older steps out, but not the steps', () => {
  const story = new Story(4);
  story.begin('narrow');
  const first = story.mark();
  story.note('b', 'processing');
  story.record(first, 'a', 'processing', 'memory', 1);
  story.endStep();
  story.begin('wide');
  const second = story.mark();
  for (let n = 0; n < 1024; n++) story.note(`d-${n}`, 'processing');
  story.record(second, 'c', 'processing', 'memory', 2);
  const [narrow, wide] = story.all();
  expect(narrow).toMatchObject({ key: 'a', stimulusId: 'narrow', recommendations: [] });
  expect(wide).toMatchObject({ key: 'c', stimulusId: 'wide' });
  expect(wide?.recommendations).toHaveLength(1024);
  expect(wide?.recommendations[1023]).toEqual(['d-1023', 'processing']);
});
