import { describe, expect, it } from 'vitest';
import { jsonWorkloads } from '../../../adapters/workloads/index.ts';

const SPLIT = {
  d: 2,
  e_d: null,
  cpus: 1,
  outputs: [
    { s: 1.5, e_s: 2 },
    { s: 0.5, e_s: 0.5 },
  ],
  inputs: [],
};
const half = (output: number): object => {
  return { d: 1, e_d: 1, cpus: 1, outputs: [{ s: 0, e_s: 0 }], inputs: [[0, output]] };
};
const GRAPH = [SPLIT, half(0), half(1)];

describe('a graph of Estee', () => {
  it('has a result as large as all outputs of its task, and kinds by estimates', () => {
    const [workload] = jsonWorkloads(JSON.stringify(GRAPH), 'sets/halves.json');
    expect(workload).toMatchObject({ name: 'halves', keys: ['t1', 't2'] });
    expect(workload!.tasks.map(({ dependencies }) => dependencies)).toEqual([[], ['t0'], ['t0']]);
    expect(workload!.tasks.map(({ prefix }) => prefix)).toEqual(['f0', 'f1', 'f1']);
    expect([...workload!.durationsS]).toEqual([2, 1, 1]);
    expect([...workload!.nbytes]).toEqual([2 * 2 ** 20, 0, 0]);
  });

  it.each([
    [[{ ...SPLIT, d: -1 }], 'has the d -1 for [0]; it must be a number, 0 or more'],
    [[{ ...SPLIT, outputs: [{ s: 'much' }] }], 'has the s "much" for [0]; it must be a number'],
    [[{ ...SPLIT, outputs: 3 }], 'has no list at [0].outputs'],
    [[SPLIT, half(2)], 'has the input [0,2] at [1].inputs[0], and no such output; an input is'],
    [[{ ...SPLIT, inputs: [7] }], 'has the input 7 at [0].inputs[0], and no such output'],
    [[null], 'has no object at [0]'],
    [[], 'halves.json: the graph has no tasks'],
    [[half(0)], 'halves.json: the graph has a cycle: t0 -> t0'],
  ])('is refused when it is wrong: %j', (graph, message) => {
    expect(() => jsonWorkloads(JSON.stringify(graph), 'halves.json')).toThrow(message);
  });
});

describe('a data set of Estee', () => {
  const rows = (...names: string[]): string =>
    JSON.stringify({
      graph_name: Object.fromEntries(names.entries()),
      graph_id: {},
      graph: Object.fromEntries(names.map((_, row) => [row, JSON.stringify(GRAPH)])),
    });

  it('has a graph in each row; those that share a name are told apart by their rows', () => {
    const names = jsonWorkloads(rows('fork', 'random', 'random'), 'some.json').map(
      ({ name }) => name,
    );
    expect(names).toEqual(['some#fork', 'some#random-1', 'some#random-2']);
  });

  it('is refused when a graph is no text', () => {
    const wrong = JSON.stringify({ graph_name: { 0: 'fork' }, graph: { 0: 3 } });
    expect(() => jsonWorkloads(wrong, 'some.json')).toThrow('some.json has no text at graph.0');
  });
});

it('JSON of no known format is refused with the formats that are read', () => {
  expect(() => jsonWorkloads('{}', 'some.json')).toThrow(
    'some.json is neither an instance of WfCommons (schemaVersion, workflow), nor a graph of Estee',
  );
  expect(() => jsonWorkloads('3', 'some.json')).toThrow('some.json has no object at the file');
});
