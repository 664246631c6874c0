import { describe, expect, it } from 'vitest';
import type { Priority } from '../../../core/api/index.ts';
import { Family, family, FamilyLine, findFamilies } from '../../../policies/queuing/family.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import { graphTasks, numbered, sinks, type TerseGraph } from '../../kit/graph.ts';
import { made } from '../../kit/made.ts';

/** `reduces('x', 2, 3)`: x-0 x-1 x-2 meet in sum-0, x-3 x-4 x-5 in sum-1. */
function reduces(prefix: string, count: number, fanIn: number): TerseGraph {
  const sums = Array.from({ length: count }, (_, n) => [
    `${prefix}sum-${n}`,
    Array.from({ length: fanIn }, (__, part) => `${prefix}-${n * fanIn + part}`),
  ]);
  return { ...numbered(prefix, count * fanIn), ...(Object.fromEntries(sums) as TerseGraph) };
}

function cluster(options: Partial<Parameters<typeof family.create>[0]> = {}): SchedulerEnv {
  return new SchedulerEnv({ policies: { queuing: made(family, options) } });
}

// ---- what is found in a graph ---------------------------------------------------------------

/** The families of a graph, each as its keys; the roots alone when there is no family. */
function familiesOf(graph: TerseGraph, sizeMax = 64): string[] {
  const env = cluster();
  const tasks = graphTasks(graph);
  env.submit(graph, { keys: sinks(tasks) });
  const order = [...env.cluster.tasks.values()];
  const { found } = findFamilies(order, sizeMax);
  return found.map(({ roots }) => roots.map(({ key }) => key).join(' '));
}

describe('a family', () => {
  it('is the roots that meet in the same task, directly or through chains', () => {
    const graph = {
      a: [],
      b: [],
      c: [],
      d: [],
      a2: ['a'],
      b2: ['b'],
      x: ['a2', 'b2'],
      y: ['c', 'd'],
    };
    expect(familiesOf(graph)).toEqual(['a b', 'c d']);
  });

  it('is of the first meeting, not of a later one', () => {
    const graph = { a: [], b: [], c: [], x: ['a', 'b'], y: ['x', 'c'], z: ['y'] };
    // c meets the family of a and b.
    expect(familiesOf(graph)).toEqual(['a b c']);
    const tree = { ...graph, d: [], w: ['c', 'd'], y: ['x', 'w'] };
    expect(familiesOf(tree)).toEqual(['a b', 'c d']);
  });

  it('reaches across collections', () => {
    const sums = Object.fromEntries(
      [0, 1, 2].map((n) => [`sum-${n}`, [`left-${n}`, `right-${n}`]]),
    );
    expect(familiesOf({ ...numbered('left', 3), ...numbered('right', 3), ...sums })).toEqual([
      'left-0 right-0',
      'left-1 right-1',
      'left-2 right-2',
    ]);
  });

  it('is divided in order when it is too large', () => {
    expect(familiesOf(reduces('x', 1, 5), 2)).toEqual(['x-0 x-1', 'x-2 x-3', 'x-4']);
  });

  it('does not spread over a whole chain of overlaps', () => {
    const overlaps = Object.fromEntries(
      Array.from({ length: 7 }, (_, n) => [`o-${n}`, [`x-${n}`, `x-${n + 1}`]]),
    );
    expect(familiesOf({ ...numbered('x', 8), ...overlaps }, 4)).toEqual([
      'x-0 x-1 x-2 x-3',
      'x-4 x-5 x-6 x-7',
    ]);
  });

  it('has no root that meets no other root', () => {
    expect(familiesOf(numbered('x', 5), 2)).toEqual([]);
  });

  it('can be named, and is then as large as it is said to be', () => {
    const named = { annotations: { family: 'mine' } };
    const graph = { a: named, b: [], c: named, x: ['b'], y: ['a', 'c'] };
    expect(familiesOf(graph, 1)).toEqual(['a c']);
  });
});

describe('a root', () => {
  function rootsOf(graph: TerseGraph): string[] {
    const env = cluster();
    env.submit(graph);
    const tasks = [...env.cluster.tasks.values()];
    const { isRoot } = findFamilies(tasks, 64);
    return tasks.filter((_, place) => isRoot[place]).map(({ key }) => key);
  }

  it('has no inputs, or only some that much of the graph needs, whatever its name', () => {
    const readers = Object.fromEntries(
      Array.from({ length: 8 }, (_, n) => [`any${n}name`, ['data']]),
    );
    expect(rootsOf({ data: [], ...readers, all: Object.keys(readers) })).toHaveLength(9);
    expect(rootsOf({ data: [], a: ['data'], b: ['data'] })).toEqual(['data']);
  });

  it('is none of the many pieces that are cut from the same input', () => {
    // A shuffle: each of 16 parts is cut into 16 pieces.
    const pieces = Object.fromEntries(
      Array.from({ length: 256 }, (_, n) => [`piece-${n}`, [`part-${n % 16}`]]),
    );
    expect(rootsOf({ ...numbered('part', 16), ...pieces })).toHaveLength(16);
  });

  it('is what an annotation says it is', () => {
    const graph = {
      a: { annotations: { rootish: false } },
      b: { deps: ['a'], annotations: { rootish: true } },
    };
    expect(rootsOf(graph)).toEqual(['b']);
  });

  it('is no restricted task and no actor', () => {
    expect(rootsOf({ a: { workers: ['w1'] }, b: { actor: true }, c: [] })).toEqual(['c']);
  });

  it('stays one when the cluster grows or shrinks', () => {
    const env = cluster();
    env.submit(numbered('x', 3));
    expect(env.states['x-0']).toBe('queued');
    env.addWorkers(1, { threads: 100 });
    expect(env.kernel['scope'].ports.queuing.policy.isRootish(env.task('x-0'), env.cluster)).toBe(
      true,
    );
  });
});

// ---- where they go --------------------------------------------------------------------------

describe('with the policy family', () => {
  function processing(env: SchedulerEnv, name: string): string {
    return [...env.worker(name).processing].map(({ key }) => key).join(' ');
  }

  it('each worker begins with a separate family, and has no more than its slots', () => {
    const env = cluster();
    env.addWorkers(3);
    env.submit(reduces('x', 3, 4));
    expect(processing(env, 'w1')).toBe('x-0 x-1');
    expect(processing(env, 'w2')).toBe('x-4 x-5');
    expect(processing(env, 'w3')).toBe('x-8 x-9');
    expect(env.cluster.queued.size).toBe(6);
  });

  it('a single root begins on a worker that says it is fast, as long as that has nothing to do', () => {
    const env = cluster();
    for (const [name, speed] of Object.entries({ w1: 500, w2: 1000, w3: 2000 })) {
      env.addWorker(name, { speed });
    }
    for (const n of [1, 2, 3]) env.submit({ [`x-${n}`]: [] });
    expect(processing(env, 'w3')).toBe('x-1');
    expect(processing(env, 'w2')).toBe('x-2');
    expect(processing(env, 'w1')).toBe('x-3');
  });

  it('a slot that opens is for the next one of the family', () => {
    const env = cluster();
    env.addWorkers(2);
    env.submit(reduces('x', 4, 4));
    env.finish('x-4');
    expect(processing(env, 'w2')).toBe('x-5 x-6');
    env.finish('x-5');
    env.finish('x-6');
    env.finish('x-7');
    // It begins the next family without a worker, once its own is done.
    expect(processing(env, 'w2')).toBe('x-8 xsum-1');
    expect(env.task('xsum-1').dependencies.every((input) => input.whoHas.size === 1)).toBe(true);
  });

  it('a worker without a family helps others: no slot stays open', () => {
    const env = cluster();
    env.addWorkers(4);
    env.submit(reduces('x', 1, 6));
    for (const name of ['w1', 'w2', 'w3', 'w4']) {
      expect(env.worker(name).processing.size).toBeGreaterThan(0);
    }
    expect(env.cluster.queued.size).toBe(0);
  });

  it('a family goes to another worker when its own leaves or pauses', () => {
    const env = cluster();
    env.addWorkers(2);
    env.submit(reduces('x', 2, 4));
    env.setStatus('w1', 'paused');
    env.finish('x-4');
    env.finish('x-5');
    env.finish('x-6');
    expect(processing(env, 'w2')).toContain('x-2');
    env.removeWorker('w1');
    env.finish('x-7');
    env.finish('x-2');
    expect(processing(env, 'w2')).toContain('x-0');
  });

  it('what the user calls urgent does not wait for the end of a family', () => {
    const env = cluster();
    env.addWorkers(1);
    env.submit(reduces('x', 1, 6));
    env.submit({ urgent: { userPriority: 1 } });
    expect(env.state('urgent')).toBe('queued');
    env.finish('x-0');
    expect(processing(env, 'w1')).toBe('x-1 urgent');
    env.finish('urgent');
    expect(processing(env, 'w1')).toBe('x-1 x-2');
  });

  it('families of an older submission go first', () => {
    const env = cluster();
    env.addWorkers(1);
    env.submit(reduces('x', 2, 2));
    env.advance(1000).submit(reduces('y', 1, 2));
    env.finishAll('x-0', 'x-1', 'xsum-0');
    expect(processing(env, 'w1')).toBe('x-2 x-3');
    env.finishAll('x-2', 'x-3', 'xsum-1');
    expect(processing(env, 'w1')).toBe('y-0 y-1');
  });

  it('cancelled families are skipped', () => {
    const env = cluster();
    env.addWorkers(1);
    env.submit(reduces('x', 4, 2));
    env.release('xsum-1');
    env.finishAll('x-0', 'x-1', 'xsum-0');
    expect(processing(env, 'w1')).toBe('x-4 x-5');
  });

  it('without slots nothing is held back, and a family still stays together', () => {
    const env = cluster({ workerSaturation: 'inf' });
    env.addWorkers(2);
    env.submit(reduces('x', 4, 2));
    expect(env.cluster.queued.size).toBe(0);
    expect(processing(env, 'w1')).toBe('x-0 x-1 x-4 x-5');
    expect(processing(env, 'w2')).toBe('x-2 x-3 x-6 x-7');
  });

  it('a restart leaves nothing behind', () => {
    const env = cluster();
    env.addWorkers(1);
    env.submit(reduces('x', 3, 2));
    env.send({ op: 'restart' });
    env.submit(reduces('y', 2, 2));
    env.finishAll('y-0', 'y-1', 'ysum-0', 'y-2', 'y-3', 'ysum-1');
    expect(env.policyFailures).toEqual([]);
    expect(env.states).toMatchObject({ 'ysum-0': 'memory w1', 'ysum-1': 'memory w1' });
  });
});

it('families that come in the reverse order of their priorities are not all compared with each other', () => {
  let reads = 0;
  const counting = (priority: Priority): Priority =>
    new Proxy(priority, {
      get(target, field, receiver) {
        reads++;
        return Reflect.get(target, field, receiver) as unknown;
      },
    });
  const line = new FamilyLine();
  for (let n = 1000; n > 0; n--) line.add(new Family(true), counting([0, n, 0]));
  expect(reads).toBeLessThan(1000 * 100);
  expect(line.waiting.map(({ waitsWith }) => waitsWith[1])).toEqual(
    Array.from({ length: 1000 }, (_, n) => n + 1),
  );
});

it('single tasks, one after the other, go to workers with nothing to do in turn', () => {
  const env = new SchedulerEnv({ policies: { queuing: made(family) } });
  env.addWorkers(3);
  const names = ['a', 'b', 'c', 'd'].map((key) => {
    env.submit({ [key]: {} });
    const name = env.task(key).processingOn?.name;
    env.finish(key);
    return name;
  });
  expect(new Set(names.slice(0, 3)).size).toBe(3);
  expect(names[3]).toBe(names[0]);
});

it('roots that meet nowhere go to idle threads before they wait on a worker', () => {
  const env = new SchedulerEnv({ policies: { queuing: made(family) } });
  env.addWorkers(2);
  env.submit({ a: {}, b: {} });
  expect(env.task('a').processingOn).not.toBe(env.task('b').processingOn);
});

it('a root without a family takes its turn by priority, also where a family is under way', () => {
  const env = new SchedulerEnv({ policies: { queuing: made(family, { workerSaturation: 1 }) } });
  env.addWorkers(1);
  const roots = numbered('x', 4);
  env.submit({ ...roots, sum: Object.keys(roots), alone: {} });
  const order: string[] = [];
  for (let n = 0; n < 5; n++) {
    const [running] = [...env.worker('w1').processing];
    order.push(running!.key);
    env.finish(running!.key);
  }
  const ranks = order.map((key) => env.task(key).rank);
  expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
});
