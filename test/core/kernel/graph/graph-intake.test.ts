import { describe, expect, it } from 'vitest';
import type { Ordering } from '../../../../core/api/policies.ts';
import type { TaskErredMessage } from '../../../../core/messages/to-client.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** Submits all pending graphs completely. */
function finishIntake(env: SchedulerEnv): number {
  let slices = 0;
  for (; env.kernel.isUnsettled; slices++) nextSlice(env);
  return slices;
}

function nextSlice(env: SchedulerEnv): void {
  env.send({ op: 'continue' });
}

function finishInSlices(env: SchedulerEnv, ...keys: string[]): void {
  for (const key of keys) {
    env.finish(key);
    finishIntake(env);
  }
}

function inSlicesOf(sliceTransitions: number): SchedulerEnv {
  return new SchedulerEnv({ kernel: { sliceTransitions } });
}

function slicesUntil(env: SchedulerEnv, isThere: () => boolean): void {
  while (!isThere()) nextSlice(env);
}

const TREE = { a: [], b: [], c: ['a', 'b'], d: ['c'] };

describe('a graph that is submitted in slices', () => {
  it('gives the same result as one that is submitted at once', () => {
    const env = inSlicesOf(2);
    env.addWorkers(1);
    env.submit(TREE);
    expect(env.states).toEqual({ a: 'released', b: 'released' });
    expect(finishIntake(env)).toBeGreaterThan(6);
    finishInSlices(env, 'a', 'b', 'c', 'd');
    expect(env.takeClient()).toEqual(['key-in-memory d on w1']);
    env.release('d');
    finishIntake(env);
    expect(env.states).toEqual({});
  });

  it('starts nothing before all of it is there', () => {
    const env = inSlicesOf(3);
    env.addWorkers(1);
    env.submit(numbered('x', 20));
    slicesUntil(env, () => env.cluster.tasks.size === 20);
    expect(new Set(Object.values(env.states))).toEqual(new Set(['released']));
    expect(env.takeWorker('w1')).toEqual([]);
  });

  it('has the id of its submission in the story of its tasks', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    const id = env.submit(TREE);
    finishIntake(env);
    expect(new Set(env.kernel.story('a').map(({ stimulusId }) => stimulusId))).toEqual(
      new Set([id]),
    );
  });

  it('gives way to workers: what is done before the rest starts is kept for it', () => {
    const env = inSlicesOf(1);
    env.addWorkers(2);
    env.submit(TREE);
    slicesUntil(env, () => env.states['a']?.startsWith('processing') === true);
    env.finish('a');
    expect(env.state('a')).toMatch(/^memory/);
    finishIntake(env);
    finishInSlices(env, 'b', 'c', 'd');
    expect(env.takeClient()).toMatchObject([expect.stringMatching(/^key-in-memory d/)]);
  });

  it('waits behind another one', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1, { threads: 2 });
    env.submit({ a: [], b: [] });
    env.submit({ c: [], d: [] }, { client: 'd' });
    slicesUntil(env, () => env.cluster.tasks.has('c'));
    expect(env.kernel.isBusyFor('c')).toBe(false);
    expect(env.states).toMatchObject({ a: 'processing w1', b: 'processing w1' });
    finishIntake(env);
    expect(Object.keys(env.states)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('is refused as a whole when it has a cycle, and leaves nothing', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: ['c'], b: ['a'], c: ['b'], d: [] }, { keys: ['c', 'd'] });
    finishIntake(env);
    const messages = env.takeClientMessages() as TaskErredMessage[];
    expect(messages.map(({ op, key }) => `${op} ${key}`)).toEqual(['task-erred c', 'task-erred d']);
    expect(messages[0]?.failure.exception).toMatchObject({ code: 'ERR_GRAPH_CYCLE' });
    expect(env.states).toEqual({});
    env.expectEmpty();
  });

  it('reports what is lost, and computes the rest', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [], b: ['nobody'], c: ['b'] }, { keys: ['a', 'c'] });
    finishIntake(env);
    expect(env.takeClient()).toEqual(['cancelled-keys c']);
    expect(env.states).toEqual({ a: 'processing w1' });
  });

  it('reports the tasks that were there before', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [] });
    finishIntake(env);
    env.finish('a');
    env.ignoreMessages();
    env.submit({ a: [], b: ['a'] }, { client: 'd', keys: ['a', 'b'] });
    finishIntake(env);
    expect(env.takeClient('d')).toEqual(['key-in-memory a on w1']);
  });
});

describe('while a graph is submitted', () => {
  it('its inputs are not forgotten when other clients release them', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [] });
    finishIntake(env);
    env.finish('a');
    env.submit({ b: ['a'], c: [] }, { client: 'd' });
    slicesUntil(env, () => env.cluster.tasks.get('a')?.whoWants.size === 2);
    env.release('a');
    expect(env.state('a')).toBe('memory');
    finishIntake(env);
    expect(env.state('b')).toBe('processing');
  });

  it('no other graph can depend on a task without a definition', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [], b: ['a'] });
    slicesUntil(env, () => env.cluster.tasks.size === 2);
    env.submit({ x: ['a'] }, { client: 'd' });
    expect(env.takeClient('d')).toEqual(['cancelled-keys x']);
  });

  it('a client that waits for a task of it goes on waiting, whatever else it submits under the key', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [], b: ['a'] }, { client: 'd' });
    slicesUntil(env, () => env.cluster.tasks.size === 2);
    env.desire('a');
    env.submit({ a: ['lost'] });
    finishIntake(env);
    env.finish('a');
    expect(env.takeClient()).toEqual(['key-in-memory a on w1']);
  });

  it('the first definition that is complete counts', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [], b: ['a'] });
    slicesUntil(env, () => env.cluster.tasks.size === 2);
    env.submit({ b: [] }, { client: 'd' });
    expect(env.state('b')).toBe('waiting');
    finishIntake(env);
    expect(env.takeEvents()).toMatchObject([{ message: { action: 'key-collision', key: 'b' } }]);
    env.finish('b');
    expect(env.takeClient('d')).toEqual(['key-in-memory b on w1']);
    expect(env.takeClient()).toEqual(['key-in-memory b on w1']);
  });

  it('the graph of a client that leaves is dropped, at whatever slice', () => {
    for (let after = 0; ; after++) {
      const env = inSlicesOf(1);
      env.addWorkers(1);
      env.submit({ ...TREE, culled: [] }, { keys: ['d', 'a'] });
      for (let slice = 0; slice < after; slice++) nextSlice(env);
      const isOver = !env.kernel.isUnsettled;
      env.send({ op: 'remove-client', client: 'c' });
      finishIntake(env);
      expect(env.states).toEqual({});
      expect(env.cluster.groups.size).toBe(0);
      if (isOver) return;
    }
  });

  it('what others need of a dropped graph is computed, and what is never defined is cancelled', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.client('d');
    env.submit({ a: [], b: ['a'] });
    slicesUntil(env, () => env.cluster.tasks.get('a')?.runSpec !== undefined);
    env.send({ op: 'client-desires-keys', client: 'd', keys: ['a', 'b'] });
    env.send({ op: 'remove-client', client: 'c' });
    finishIntake(env);
    expect(env.takeClient('d')).toEqual(['cancelled-keys b']);
    expect(env.states).toEqual({ a: 'processing w1' });
  });

  it('a restart drops it', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit(TREE);
    for (let slice = 0; slice < 10; slice++) nextSlice(env);
    env.send({ op: 'restart' });
    expect(env.states).toEqual({});
    expect(env.kernel.isUnsettled).toBe(false);
  });

  it('a key that another client cancels for all is not computed for its client', () => {
    const env = inSlicesOf(1);
    env.addWorkers(1);
    env.submit({ a: [], b: [] });
    env.client('d');
    slicesUntil(env, () => env.cluster.tasks.size === 2);
    env.cancel(['a'], { client: 'd', force: true });
    finishIntake(env);
    expect(env.takeClient()).toEqual(['cancelled-keys a']);
    expect(Object.keys(env.states)).toEqual(['b']);
  });
});

describe('the order of a graph that is submitted in slices', () => {
  const reversed = (tasks: readonly unknown[]): number[] =>
    tasks.map((_, index) => tasks.length - index);

  function ranksWith(ordering: Ordering, kernel = {}): [number | undefined, number | undefined] {
    const env = new SchedulerEnv({
      policies: { ordering },
      kernel: { sliceTransitions: 1, ...kernel },
    });
    env.submit({ a: [], b: [] });
    finishIntake(env);
    expect(env.policyFailures.map(({ slot }) => slot)).toEqual(
      'validate' in kernel ? ['ordering'] : [],
    );
    return [env.cluster.tasks.get('a')?.rank, env.cluster.tasks.get('b')?.rank];
  }

  it('is found in steps when the policy pauses', () => {
    const pausing: Ordering = {
      *order(tasks) {
        for (let pauses = 0; pauses < 3; pauses++) yield;
        return reversed(tasks);
      },
    };
    expect(ranksWith(pausing)).toEqual([2, 1]);
  });

  it('is found at once when it does not', () => {
    expect(ranksWith({ order: reversed })).toEqual([2, 1]);
  });

  it('is found by the built-in policy when it fails', () => {
    const failing: Ordering = {
      *order() {
        yield;
        throw new Error('lost the thread');
      },
    };
    expect(ranksWith(failing, { validate: false })).toEqual([0, 1]);
  });
});
