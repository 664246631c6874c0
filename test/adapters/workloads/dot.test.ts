import { describe, expect, it } from 'vitest';
import { dotWorkload } from '../../../adapters/workloads/index.ts';

/** What each task takes, how large its result is, and what it needs. */
async function read(text: string): Promise<Record<string, [number, number, ...string[]]>> {
  const { tasks, durationsS, nbytes } = await dotWorkload(text, 'graph.dot');
  return Object.fromEntries(
    tasks.map(({ key, dependencies }, at) => [
      key,
      [durationsS[at]!, nbytes[at]!, ...dependencies],
    ]),
  );
}

describe('a graph in DOT', () => {
  it('has durations and sizes with and without units', async () => {
    expect(
      await read(`digraph daily { // comment
        load [duration="1.5s", size="2 MB"];  "clean it" [runtime=0.25 bytes=1000]
        load -> "clean it" -> 12; 12 [cost="100ms"] }`),
    ).toEqual({ load: [1.5, 2e6], 'clean it': [0.25, 1000, 'load'], 12: [0.1, 0, 'clean it'] });
  });

  it('has results as large as the largest arrow where nodes have no size', async () => {
    const text = 'digraph { node [weight=1]; a -> b [weight=10]; a -> c [data="1kB"]; c -> d }';
    expect(await read(text)).toEqual({
      a: [1, 1000],
      b: [1, 0, 'a'],
      c: [1, 0, 'a'],
      d: [1, 0, 'c'],
    });
  });

  it('may connect groups, and defaults are those of the group', async () => {
    const text = `digraph { node [duration=1];
      subgraph cluster_left { node [duration=2, size=5]; a; b } -> { c d:port }; e [duration=3]; {a} -> e }`;
    expect(await read(text)).toEqual({
      ...{ a: [2, 5], b: [2, 5], c: [1, 0, 'a', 'b'], d: [1, 0, 'a', 'b'], e: [3, 0, 'a'] },
    });
  });

  it('has kinds of tasks where nodes have a prefix', async () => {
    const { tasks } = await dotWorkload('digraph { a [cost=1, prefix=load]; b [cost=1] }', 'x.dot');
    expect(tasks.map(({ prefix }) => prefix)).toEqual(['load', undefined]);
  });

  it.each([
    ['digraph { a -> }', 'graph.dot is no DOT in line 1, column 16: Expected'],
    ['graph { a -- b }', 'graph.dot has no digraph'],
    ['digraph {a [cost=1]} digraph {}', 'graph.dot has more than one graph'],
    ['digraph { a -> b }', 'has no duration for the node "a"; give it one of duration, runtime'],
    ['digraph { a [duration=soon] }', 'has the duration "soon" for the node "a"; it must be'],
    ['digraph { a [duration=-1] }', 'has the duration -1 for the node "a"'],
    ['digraph { a [duration=inf] }', 'has the duration "inf" for the node "a"'],
    ['digraph { a [cost=1, size=much] }', 'has the size "much" for the node "a"'],
    ['digraph { a -> b [data=many] }', 'has the data "many" for an arrow of the node "a"'],
    ['digraph { node [cost=1]; a -> b -> a }', 'graph.dot: the graph has a cycle: a -> b -> a'],
    ['digraph {}', 'graph.dot: the graph has no tasks'],
    [`digraph ${'{'.repeat(1e6)}`, 'graph.dot is no DOT'],
  ])('is refused when it is wrong: %.40s', async (text, message) => {
    await expect(dotWorkload(text, 'graph.dot')).rejects.toThrow(message);
  });

  it('whose groups stand for too many arrows is refused', async () => {
    const group = (name: string): string =>
      `{ ${Array.from({ length: 5000 }, (_, at) => `${name}${at}`).join(' ')} }`;
    const text = `digraph { node [cost=1]; ${group('a')} -> ${group('b')} }`;
    await expect(dotWorkload(text, 'graph.dot')).rejects.toThrow(
      'graph.dot has more than 20000000 arrows, the most that are read',
    );
  });
});
