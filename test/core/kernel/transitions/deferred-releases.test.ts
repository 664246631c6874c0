import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered, type TerseGraph } from '../../../kit/graph.ts';

function environment(sliceTransitions: number, workerSaturation = Infinity): SchedulerEnv {
  const env = new SchedulerEnv({ kernel: { sliceTransitions }, queuing: { workerSaturation } });
  env.addWorkers(2);
  return env;
}

/** Returns how many slices it took. */
function continueSettling(env: SchedulerEnv): number {
  let slices = 0;
  for (; env.kernel.isUnsettled; slices++) env.send({ op: 'continue' });
  return slices;
}

function key(number: number): string {
  return `t-${number}`;
}

/** Each task depends on those before it for which a bit is set. */
const graphs: fc.Arbitrary<TerseGraph> = fc
  .array(fc.nat(2 ** 12 - 1), { minLength: 1, maxLength: 12 })
  .map((masks) =>
    Object.fromEntries(
      masks.map((mask, number) => {
        const deps = masks.slice(0, number).flatMap((_, other) => {
          return (mask & (1 << other)) === 0 ? [] : [key(other)];
        });
        return [key(number), deps];
      }),
    ),
  );

/** Three stages, of which the last is wanted and has a result. */
function finished(sliceTransitions: number): SchedulerEnv {
  const env = environment(sliceTransitions);
  const middle = Object.fromEntries(
    Array.from({ length: 4 }, (_, index) => [`m-${index}`, [`r-${index}`]]),
  );
  const graph = { ...numbered('r', 4), ...middle, end: Object.keys(middle) };
  env.submit(graph);
  continueSettling(env);
  for (const task of Object.keys(graph)) {
    env.finish(task);
    continueSettling(env);
  }
  env.ignoreMessages();
  return env;
}

describe('a task that is not needed', () => {
  it('is released in slices as it is at once', () => {
    const run = (
      graph: TerseGraph,
      finishedCount: number,
      sliceTransitions: number,
    ): string[][] => {
      const env = environment(sliceTransitions);
      const keys = Object.keys(graph);
      env.submit(graph, { keys });
      continueSettling(env);
      for (let count = 0; count < finishedCount; count++) {
        const [next] = Object.entries(env.states).filter(([, state]) =>
          state.includes('processing'),
        );
        if (next !== undefined) env.finish(next[0]);
        continueSettling(env);
      }
      env.ignoreMessages();
      env.release(...keys);
      continueSettling(env);
      expect(env.states).toEqual({});
      return [env.takeWorker('w1'), env.takeWorker('w2'), env.takeClient()];
    };
    fc.assert(
      fc.property(graphs, fc.nat(12), fc.integer({ min: 1, max: 5 }), (graph, done, slice) => {
        const [sliced, whole] = [run(graph, done, slice), run(graph, done, Infinity)];
        // More keys than this are released from the end of their list: the order is another one.
        const isCut = Object.keys(graph).length > 4 * slice;
        if (isCut) for (const messages of [...sliced, ...whole]) messages.sort();
        expect(sliced).toEqual(whole);
      }),
      { numRuns: 150 },
    );
  });

  it('is there until its turn comes', () => {
    const env = finished(2);
    env.release('end');
    expect(Object.keys(env.states)).toHaveLength(7);
    expect(continueSettling(env)).toBe(4);
    expect(env.states).toEqual({});
  });

  it('is kept when a client submits it meanwhile', () => {
    const env = finished(1);
    env.release('end');
    env.submit({ n: ['m-0'] });
    continueSettling(env);
    expect(Object.keys(env.states).sort()).toEqual(['m-0', 'n', 'r-0']);
    for (const name of ['r-0', 'm-0', 'n']) {
      env.finish(name);
      continueSettling(env);
    }
    expect(env.takeClient()).toEqual([expect.stringContaining('key-in-memory n')]);
  });

  it('takes turns with a large graph, however much others release', () => {
    const env = environment(2);
    const results = ['a', 'b', 'c'].map((client) => {
      const graph = numbered(client, 90);
      env.submit(graph, { client });
      continueSettling(env);
      for (const name of Object.keys(graph)) env.finish(name);
      return { client, keys: Object.keys(graph) };
    });
    env.submit(numbered('big', 4), { client: 'other' });
    const isOpen = (): boolean => env.states['big-3']?.includes('processing') !== true;
    while (isOpen() && results.some(({ keys }) => keys.length > 0)) {
      for (const { client, keys } of results) {
        if (env.kernel.isBusyFor(client)) continue;
        env.send({ op: 'client-releases-keys', client, keys: keys.splice(0, 7) });
      }
      env.send({ op: 'continue' });
    }
    expect(isOpen()).toBe(false);
    expect(continueSettling(env)).toBeGreaterThan(0);
  });

  it('starts again with a large graph that needs it', () => {
    const env = finished(1);
    env.release('end');
    env.send({ op: 'continue' });
    const left = Object.entries(env.states).filter(([, state]) => state === 'released');
    env.submit(Object.fromEntries(left.map(([name]) => [name, []])));
    continueSettling(env);
    for (const [name] of left) expect(env.states[name]).toMatch(/waiting|processing/);
  });

  it('is kept with its result when a client wants it meanwhile', () => {
    const env = environment(1);
    env.submit(numbered('x', 3));
    continueSettling(env);
    env.finishAll('x-0', 'x-1', 'x-2');
    env.release('x-0', 'x-1', 'x-2');
    const [left] = Object.keys(env.states);
    env.ignoreMessages();
    env.desire(left!);
    expect(env.takeClient()).toEqual([expect.stringContaining(`key-in-memory ${left!}`)]);
    continueSettling(env);
    expect(Object.keys(env.states)).toEqual([left]);
  });

  it('is unknown to a client that wants it when only its name is left', () => {
    const env = finished(1);
    env.release('end');
    // The inputs of what was forgotten have been released before.
    const left = Object.entries(env.states).find(([name]) => name.startsWith('m-'))!;
    expect(left[1]).toBe('released');
    env.desire('m-0', 'm-1', 'm-2', 'm-3');
    expect(env.takeClient()).toEqual([expect.stringContaining('cancelled-keys')]);
  });

  it('does not start any more: a worker that has finished it is asked to free it', () => {
    const env = environment(1);
    env.submit({ a: [], b: [], c: ['a', 'b'] });
    env.submit(numbered('x', 3));
    continueSettling(env);
    env.release('x-0', 'x-1', 'x-2', 'c');
    const [running] = Object.keys(env.states).filter((name) => name.startsWith('x'));
    env.ignoreMessages();
    const worker = env.cluster.tasks.get(running!)!.processingOn!.name;
    env.finish(running!);
    continueSettling(env);
    expect(env.states).toEqual({});
    expect(env.takeWorker(worker)).toContain(`free-keys ${running!}`);
  });

  it('does not take an open slot', () => {
    const env = environment(4, 1);
    env.submit(numbered('r', 20));
    env.submit(numbered('s', 1), { client: 'd' });
    continueSettling(env);
    env.ignoreMessages();
    env.release(...Object.keys(numbered('r', 20)));
    expect(env.states['s-0']).toMatch(/processing/);
    continueSettling(env);
    expect(Object.keys(env.states)).toEqual(['s-0']);
  });

  it('does not outlive a restart', () => {
    const env = finished(1);
    env.release('end');
    env.send({ op: 'restart' });
    expect(env.states).toEqual({});
    expect(env.kernel.isUnsettled).toBe(false);
  });
});

describe('open slots', () => {
  it('are filled by slices as they are at once', () => {
    const run = (sliceTransitions: number): readonly unknown[] => {
      const env = new SchedulerEnv({ kernel: { sliceTransitions } });
      env.submit(numbered('r', 40));
      continueSettling(env);
      for (const name of ['w1', 'w2', 'w3']) env.addWorker(name, { threads: 8, status: 'paused' });
      for (const name of ['w1', 'w2', 'w3']) env.setStatus(name, 'running');
      continueSettling(env);
      return ['w1', 'w2', 'w3'].map((name) => env.takeWorker(name).length);
    };
    expect(run(8)).toEqual(run(Infinity));
  });
});

it('a cancellation with very many dependents is done in slices, to the same end as at once', () => {
  const run = (sliceTransitions: number): { readonly left: unknown; readonly keys: string[] } => {
    const env = environment(sliceTransitions);
    const dependents = Array.from({ length: 30 }, (_, index) => `d-${index}`);
    const graph = Object.fromEntries(dependents.map((name) => [name, ['root']]));
    env.client('c');
    env.client('other');
    env.submit({ root: [], ...graph }, { keys: ['root', ...dependents] });
    continueSettling(env);
    env.submit({ 'd-7': ['root'] }, { client: 'other' });
    continueSettling(env);
    env.ignoreMessages();
    env.send({ op: 'cancel-keys', client: 'c', keys: ['root'], force: false });
    const slices = continueSettling(env);
    expect(slices > 10).toBe(sliceTransitions < 30);
    const cancelled = env.takeClient('c').flatMap((line) => line.match(/(root|d-\d+)/g) ?? []);
    env.ignoreMessages();
    return { left: env.states, keys: cancelled.sort() };
  };
  const sliced = run(2);
  expect(sliced).toEqual(run(Infinity));
  expect(sliced.keys).toHaveLength(31);
  expect(sliced.left).toEqual({ root: 'processing w1', 'd-7': 'waiting' });
});
