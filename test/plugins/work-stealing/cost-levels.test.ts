import { describe, expect, it } from 'vitest';
import { levelOf } from '../../../plugins/work-stealing/levels.ts';
import { StealEnv } from './kit.ts';

const MB = 1e6;

/**
 * The level of a task that reads this many bytes; a task of its kind is expected to take half a
 * second.
 */
function levelFor(nbytes: number, durationsS: Record<string, number> = {}): number | undefined {
  const env = new StealEnv({ durationsS });
  env.addWorkers(1);
  env.scatter({ data: ['w1'] }, 'c', nbytes);
  env.submit({ task: ['data'] });
  return levelOf(env.task('task'), env.cluster.costs);
}

describe('the cost level of a task', () => {
  it('is 0 without inputs, however long it takes', () => {
    const env = new StealEnv();
    env.addWorkers(1);
    env.submit({ task: [] });
    expect(levelOf(env.task('task'), env.cluster.costs)).toBe(0);
  });

  it.each([
    [0, 4],
    [10 * MB, 5],
    [40 * MB, 6],
    [100 * MB, 7],
    [1000 * MB, 10],
    [10_000 * MB, 14],
  ])('of %d bytes against half a second is %d', (nbytes, level) => {
    expect(levelFor(nbytes)).toBe(level);
  });

  it('does not exist when the transfer takes more than 256 times as long', () => {
    expect(levelFor(20_000 * MB)).toBeUndefined();
  });

  it('is 1 for the cheapest transfers', () => {
    expect(levelFor(0, { task: 1000 })).toBe(1);
  });

  it('does not exist for tasks with inputs that take no time at all', () => {
    expect(levelFor(0, { task: 0 })).toBeUndefined();
  });

  it('sums up all inputs, those of unknown size with the default', () => {
    const env = new StealEnv();
    env.addWorkers(1);
    env.scatter({ a: ['w1'], b: ['w1'] }, 'c', 50 * MB);
    env.submit({ task: ['a', 'b'] });
    expect(levelOf(env.task('task'), env.cluster.costs)).toBe(7);
  });
});
