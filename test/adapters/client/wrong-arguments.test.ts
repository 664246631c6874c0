import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asCompleted, type Client, task, wait } from '../../../adapters/client/index.ts';
import { inc, total } from './tasks.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
let client: Client;
beforeAll(async () => {
  cluster = await VirtualCluster.start(1);
  ({ client } = cluster);
});
afterAll(() => cluster.close());

const graph = { a: task(inc, 1) };

/** Arguments as a program without types gives them. */
function wrong(value: unknown): never {
  return value as never;
}

describe('a call with a wrong argument says what it wants:', () => {
  test.each<[string, () => unknown, string]>([
    [
      'map',
      () => client.map(inc, wrong(5)),
      'map wants a sequence for argument 1 of the function, got 5',
    ],
    ['map without arguments', () => client.map(wrong(inc)), 'map wants at least one sequence'],
    ['forEach', () => client.forEach(inc, wrong(5)), 'forEach wants a sequence of items, got 5'],
    [
      'reduce',
      () => client.reduce(total, wrong(undefined)),
      'reduce wants a sequence of items, got undefined',
    ],
    [
      'compute without keys',
      () => client.compute(graph, wrong(undefined)),
      'compute wants the name of a task of the graph',
    ],
    [
      'compute without a graph',
      () => client.compute(wrong(undefined), wrong('a')),
      'compute wants a graph',
    ],
    [
      'asCompleted of numbers',
      () => asCompleted(wrong([1, 2])).next(),
      'a future is wanted here, got 1',
    ],
    [
      'asCompleted',
      () => asCompleted(wrong(5)).next(),
      'asCompleted wants a list of futures, got 5',
    ],
    ['wait', () => wait(wrong(client.submit(inc, 1))), 'wait wants a list of futures, got <Future'],
    ['wait of null', () => wait(wrong([null])), 'a future is wanted here, got null'],
    [
      'scatter',
      () => client.scatter(wrong(5)),
      'scatter wants an array of values, or a plain object',
    ],
    [
      'cancel',
      () => client.cancel(5),
      'a future, or a structure that holds futures, is wanted here, got 5',
    ],
    ['retry', () => client.retry(undefined), 'is wanted here, got undefined'],
    [
      'semaphore',
      () => client.semaphore('s', wrong(undefined)),
      'client.semaphore: its argument must be an object (got nothing)',
    ],
    [
      'registerWorkerPlugin',
      () => client.registerWorkerPlugin(wrong(undefined)),
      'client.registerWorkerPlugin: its argument must be an object (got nothing)',
    ],
    [
      'map of a stream',
      () => client.map(inc, [1], { chunk: 0 }),
      "client.map: chunk must be a whole number above 0, or 'auto' (got 0)",
    ],
    [
      'forEach',
      () => client.forEach(inc, [1], wrong([2])),
      'client.forEach: its argument must be an object (got [2])',
    ],
    ['with', () => client.with(wrong(5)), 'its argument must be an object (got 5)'],
    ['with null', () => client.with(wrong(null)), 'its argument must be an object (got null)'],
    [
      'setPriority',
      () => client.setPriority(client.submit(inc, 2), wrong('a')),
      'priority must be a finite number, or come in a Map of futures (got "a")',
    ],
  ])('%s', async (_what, call, message) => {
    let error: unknown;
    try {
      await cluster.passing(Promise.resolve(call()));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({
      code: 'ERR_GRAPH_INVALID',
      message: expect.stringContaining(message) as string,
    });
  });
});
