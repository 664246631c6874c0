import { describe, expect, it } from 'vitest';
import { calm as calmPolicy } from '../../../policies/stealing/calm.ts';
import { dask } from '../../../policies/stealing/dask.ts';
import { numbered } from '../../kit/graph.ts';
import { StealEnv } from '../../plugins/work-stealing/kit.ts';
import { made } from '../../kit/made.ts';

const calm = (horizonS = 0.5): StealEnv =>
  new StealEnv({ policy: made(calmPolicy, { horizonMs: 1000 * horizonS }) });

describe('calm stealing', () => {
  it('gives a worker that has just joined what it needs for the horizon, and no more', () => {
    const env = calm(2);
    env.place({ w1: numbered('x', 40), w2: {} });
    env.settle();
    // Half a second each: four of them are two seconds.
    expect(env.counts).toEqual({ w1: 36, w2: 4 });
  });

  it('leaves a worker alone that has enough for the horizon, where eager stealing evens out', () => {
    const place = (env: StealEnv): StealEnv => {
      return env.place({ w1: numbered('x', 20), w2: numbered('y', 2) });
    };
    expect(place(new StealEnv({ policy: dask.create({}) })).balance()).not.toEqual([]);
    expect(place(calm(0.8)).balance()).toEqual([]);
  });

  it('takes from a slow worker what a fast one ends sooner, and not the other way', () => {
    const place = (slow: 'w1' | 'w2'): StealEnv => {
      const env = calm(2);
      env.place({ w1: numbered('x', 6), w2: numbered('y', 1) });
      for (let count = 0; count < 20; count++) env.worker(slow).pacing.learn(Math.log(4));
      return env;
    };
    expect(place('w1').balance()).not.toEqual([]);
    expect(place('w2').balance()).toEqual([]);
  });

  it('takes what waits behind equally long tasks for a worker with nothing to do', () => {
    const env = calm();
    env.place({ w1: numbered('x', 3), w2: {} }, { threads: 2 });
    expect(env.balance()).toEqual(['x-2 w1 -> w2']);
  });

  it('steals nothing that would run at once where it is', () => {
    const env = calm();
    env.place({ w1: numbered('x', 2), w2: {} }, { threads: 2 });
    expect(env.balance()).toEqual([]);
  });

  it('steals nothing that is done hardly earlier elsewhere', () => {
    const env = calm();
    env.addWorkers(2);
    // 0.3 s of transfer and half a second of work against a second in the queue.
    env.scatter({ data: ['w1'] }, 'c', 30e6);
    env.load('w1', numbered('x', 2, ['data']));
    expect(env.balance()).toEqual([]);
    const near = calm();
    near.place({ w1: numbered('x', 2), w2: {} });
    expect(near.balance()).toEqual(['x-1 w1 -> w2']);
  });

  it('counts what the only holder of an input has to send to others first', () => {
    const env = calm(10);
    env.addWorkers(3);
    // Six tenths of a second each, at twice the price; the thieves of one round stand in line for it, too.
    const numbers = Array.from({ length: 12 }, (_, n) => n);
    env.scatter(Object.fromEntries(numbers.map((n) => [`data-${n}`, ['w1']])), 'c', 30e6);
    env.load('w1', Object.fromEntries(numbers.map((n) => [`x-${n}`, [`data-${n}`]])));
    const taken = env.balance().length;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(6);
  });

  it('compares what each thread has ahead, not what a worker has', () => {
    const env = calm();
    env.addWorker('big', { threads: 8 });
    env.addWorker('small', { threads: 1 });
    env.addWorker('free', { threads: 1 });
    env.load('big', numbered('b', 12));
    env.load('small', numbered('s', 5));
    expect(env.balance()[0]).toBe('s-4 small -> free');
  });

  it('never gives a task back to where it was stolen', () => {
    const play = (env: StealEnv): string[] => {
      env.place({ w1: numbered('x', 6), w2: {} });
      expect(env.balance()[0]).toMatch(/ w1 -> w2$/);
      env.giveUp();
      const stolen = [...env.worker('w2').processing].map(({ key }) => key);
      // Now w1 has nothing to do, and w2 has much that cannot be moved.
      env.finishAll(...[...env.worker('w1').processing].map(({ key }) => key));
      env.load('w2', numbered('y', 20, { allowOtherWorkers: false }));
      return env.balance().filter((wish) => stolen.includes(wish.split(' ')[0]!));
    };
    expect(play(new StealEnv())).not.toEqual([]);
    expect(play(calm())).toEqual([]);
  });

  it('gives it to a third worker when that one would run dry', () => {
    const env = calm();
    env.place({ w1: numbered('x', 6), w2: {} });
    env.balance();
    env.giveUp();
    const stolen = [...env.worker('w2').processing].map(({ key }) => key);
    env.load('w2', numbered('y', 20, { allowOtherWorkers: false }));
    env.addWorker('w3');
    env.settle();
    expect(stolen.map((key) => env.states[key])).toContain('processing w3');
  });

  it('comes to rest', () => {
    const env = calm();
    env.place({ w1: numbered('x', 40), w2: {}, w3: numbered('y', 7), w4: {} }, { threads: 2 });
    expect(env.settle(10)).toBeGreaterThan(0);
    expect(env.balance()).toEqual([]);
  });
});
