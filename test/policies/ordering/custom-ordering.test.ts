import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../kit/env.ts';
import { sinks } from '../../kit/graph.ts';
import { ranksOf, randomGraphs, sequenceOf, whyInvalid } from '../../kit/orders.ts';
import { cheapestFirst } from './cheapest-first.ts';

const ordering = cheapestFirst.create({});

it('the example of the guide is this one', () => {
  const example = readFileSync(new URL('cheapest-first.ts', import.meta.url), 'utf8');
  const guide = readFileSync(new URL('../../../docs/policies.md', import.meta.url), 'utf8');
  expect(guide).toContain(example.replace('../../../core/api/index.ts', 'yardmaster/policy'));
});

it('the example ranks the cheapest of the ready tasks first', () => {
  const graph = {
    dear: { annotations: { cost: 5 } },
    cheap: { annotations: { cost: 1 } },
    next: { deps: ['cheap'], annotations: { cost: 2 } },
  };
  expect(sequenceOf(ordering, graph)).toBe('cheap next dear');
});

it('the example keeps the contract', () => {
  fc.assert(
    fc.property(randomGraphs(), (tasks) => {
      expect(whyInvalid(tasks, ranksOf(ordering, tasks, sinks(tasks)))).toBeUndefined();
    }),
  );
});

it('the scheduler computes in the order of a custom policy', () => {
  const env = new SchedulerEnv({ policies: { ordering }, kernel: { validate: true } });
  env.submit({
    a: { annotations: { cost: 3 } },
    b: { annotations: { cost: 1 } },
    c: { annotations: { cost: 2 } },
  });
  expect(['a', 'b', 'c'].map((key) => env.task(key).rank)).toEqual([2, 0, 1]);
});
