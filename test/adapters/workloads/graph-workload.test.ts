import { describe, expect, it } from 'vitest';
import { graphWorkload, wfcommonsWorkload } from '../../../adapters/workloads/index.ts';

describe("a graph of one's own", () => {
  it('may come in any order, and what no task needs is wanted', () => {
    const { tasks, keys, durationsS, counts } = graphWorkload('mine', [
      { key: 'c', needs: ['a', 'b'], durationS: 3 },
      { key: 'b', needs: ['a'], durationS: 2 },
      { key: 'a', durationS: 1, nbytes: 10 },
    ]);
    expect(tasks.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
    expect([...durationsS]).toEqual([1, 2, 3]);
    expect(keys).toEqual(['c']);
    expect(counts).toEqual({ tasks: 3, dependencies: 3, longestPath: 2 });
  });

  it('of which nothing is wanted by name is computed to its end', () => {
    const tasks = [{ key: 'a' }, { key: 'b', needs: ['a'] }];
    expect(graphWorkload('mine', tasks, { wanted: [] }).keys).toEqual(['b']);
  });

  it('with a cycle is refused, and the message has the cycle', () => {
    const tasks = [
      { key: 'a', needs: ['c'] },
      { key: 'b', needs: ['a'] },
      { key: 'c', needs: ['b'] },
    ];
    expect(() => graphWorkload('mine', tasks)).toThrow(
      'mine: the graph has a cycle: a -> c -> b -> a. Each of these depends on the next; break one link.',
    );
  });

  it.each([
    [[{ key: 'a', needs: ['x'] }], 'the task "a" needs "x", and there is no such task; add it'],
    [
      [{ key: 'a', durationS: -1 }],
      'the task "a" has the durationS -1; it must be a number from 0 to 1000000000',
    ],
    [
      [{ key: 'a', nbytes: NaN }],
      'the task "a" has the nbytes NaN; it must be a number from 0 to 9007199254740991',
    ],
    [[{ key: 'a' }, { key: 'a' }], 'the task "a" is there twice; rename one of both'],
    [[], 'the graph has no tasks'],
  ])('is refused when it is wrong: %j', (tasks, message) => {
    expect(() => graphWorkload('mine', tasks)).toThrow(`mine: ${message}`);
  });

  it('with a task that needs a hundred thousand others is read in a moment', () => {
    const leaves = Array.from({ length: 100_000 }, (_, index) => ({ key: `leaf-${index}` }));
    const root = { key: 'root', needs: leaves.map(({ key }) => key) };
    expect(graphWorkload('wide', [root, ...leaves]).counts.dependencies).toBe(100_000);
  });
});

type Task = Record<string, unknown>;

const SPLIT = { name: 'split', id: 'split_1', parents: [], children: ['blast_1', 'blast_2'] };

function instance(change: (root: Task) => void = () => undefined): string {
  const root = {
    name: 'blast-2',
    schemaVersion: '1.5',
    workflow: {
      specification: {
        tasks: [
          { ...SPLIT, inputFiles: ['genome.fa'], outputFiles: ['part_1.fa', 'part_2.fa'] },
          {
            name: 'blast',
            id: 'blast_1',
            parents: ['split_1'],
            children: [],
            inputFiles: ['part_1.fa'],
            outputFiles: ['hits_1'],
          },
          {
            name: 'blast',
            id: 'blast_2',
            parents: ['split_1'],
            children: [],
            inputFiles: ['part_2.fa'],
            outputFiles: ['hits_2'],
          },
        ],
        files: [
          { id: 'genome.fa', sizeInBytes: 1000 },
          { id: 'part_1.fa', sizeInBytes: 400 },
          { id: 'part_2.fa', sizeInBytes: 600 },
          { id: 'hits_1', sizeInBytes: 7 },
          { id: 'hits_2', sizeInBytes: 8 },
        ],
      },
      execution: {
        makespanInSeconds: 9,
        executedAt: '2026-01-01T00:00:00Z',
        tasks: [
          { id: 'split_1', runtimeInSeconds: 1.5 },
          { id: 'blast_1', runtimeInSeconds: 4 },
          { id: 'blast_2', runtimeInSeconds: 5 },
        ],
      },
    },
  };
  change(root);
  return JSON.stringify(root);
}

function specification(root: Task): { tasks: Task[]; files: Task[] } {
  return (root['workflow'] as Task)['specification'] as { tasks: Task[]; files: Task[] };
}

function execution(root: Task): { tasks: Task[] } {
  return (root['workflow'] as Task)['execution'] as { tasks: Task[] };
}

describe('an instance of WfCommons', () => {
  it('becomes a workload: durations of the run, and the sizes of the files that tasks write', () => {
    const { name, tasks, durationsS, nbytes, keys } = wfcommonsWorkload(instance(), 'blast.json');
    expect(name).toBe('blast-2');
    expect(tasks.map(({ key, dependencies, prefix }) => [key, dependencies, prefix])).toEqual([
      ['split_1', [], 'split'],
      ['blast_1', ['split_1'], 'blast'],
      ['blast_2', ['split_1'], 'blast'],
    ]);
    expect([...durationsS]).toEqual([1.5, 4, 5]);
    expect([...nbytes]).toEqual([1000, 7, 8]);
    expect(keys).toEqual(['blast_1', 'blast_2']);
  });

  it.each<[string, (root: Task) => void, string]>([
    [
      'of an older version',
      (root) => (root['schemaVersion'] = '1.3'),
      'blast.json has the schemaVersion "1.3"; versions 1.5 and 1.6 are read. tools/wfcommons-migrate-instance.py',
    ],
    [
      'without a run',
      (root) => delete (root['workflow'] as Task)['execution'],
      'blast.json has no workflow.execution, so the durations of its tasks are unknown',
    ],
    [
      'with a cycle',
      (root) => (specification(root).tasks[0]!['parents'] = ['blast_2']),
      'blast.json: the graph has a cycle: split_1 -> blast_2 -> split_1',
    ],
    [
      'with a negative duration',
      (root) => (execution(root).tasks[1]!['runtimeInSeconds'] = -4),
      'blast.json has the runtimeInSeconds -4 for the task "blast_1"; it must be a number, 0 or more',
    ],
    [
      'with a duration as text',
      (root) => (execution(root).tasks[1]!['runtimeInSeconds'] = '3'),
      'blast.json has the runtimeInSeconds "3" for the task "blast_1"; it must be a number, 0 or more',
    ],
    [
      'with two tasks of one id',
      (root) => (specification(root).tasks[1]!['id'] = specification(root).tasks[0]!['id']),
      'blast.json has two tasks with the id "split_1"',
    ],
    [
      'with an unknown file',
      (root) => specification(root).files.splice(4),
      'blast.json names the file "hits_2" in outputFiles of the task "blast_2", and workflow.specification.files has no such file',
    ],
    [
      'with a file of a negative size',
      (root) => (specification(root).files[0]!['sizeInBytes'] = -1),
      'blast.json has the sizeInBytes -1 for the file "genome.fa"',
    ],
    [
      'with an unknown parent',
      (root) => (specification(root).tasks[1]!['parents'] = ['x']),
      'blast.json names "x" in parents of the task "blast_1", and has no such task',
    ],
    [
      'with a task that did not run',
      (root) => execution(root).tasks.pop(),
      'blast.json has no workflow.execution.tasks entry for the task "blast_2"',
    ],
    [
      'without tasks',
      (root) => delete (specification(root) as Partial<Task>)['tasks'],
      'blast.json has no list at workflow.specification.tasks',
    ],
  ])('%s is refused with the file and the place', (_, change, message) => {
    expect(() => wfcommonsWorkload(instance(change), 'blast.json')).toThrow(message);
  });

  it('that is no JSON is refused', () => {
    expect(() => wfcommonsWorkload('{', 'blast.json')).toThrow('blast.json is no JSON');
  });
});
