import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Simulation } from '../../../adapters/simulator/index.ts';
import type { GraphTask } from '../../../core/messages/stimulus.ts';
import { effort, stride } from '../../kit/effort.ts';
import { graphTasks, type TerseGraph } from '../../kit/graph.ts';
import { hostileSteps } from '../../kit/hostile-stimuli.ts';
import { ThrowingKernel } from '../../kit/planted-throws.ts';
import { configurations, withstand } from '../../kit/withstand.ts';

const MINUTE_MS = 60_000;

const FIRST: TerseGraph = {
  'r-0': [],
  'r-1': [],
  'r-2': { limit: { name: 'one', max: 1 } },
  'r-3': { limit: { name: 'one', max: 1 } },
  sum: ['r-0', 'r-1'],
  bad: ['r-1'],
  worse: ['bad', 'sum'],
  top: { deps: ['sum', 'r-2', 'r-3'], resources: { gpu: 1 } },
};
const SECOND: TerseGraph = { ...FIRST, more: { deps: ['sum'], retries: 1 }, last: ['more', 'top'] };

interface Ending {
  readonly mutations: number;
  readonly message: string | undefined;
}

/** Two clients with graphs that overlap, a failure, a retry, a worker that dies; then all is given up. */
async function play(throwsAt: number): Promise<Ending> {
  let kernel!: ThrowingKernel;
  await using simulation = await Simulation.start({
    workers: [{ threads: 1 }, { threads: 1, resources: { gpu: 1 } }],
    worker: { resources: { gpu: 1 } },
    heartbeatMs: 1000,
    validate: true,
    outcome: (key, attempt) =>
      key === 'bad' || (key === 'more' && attempt === 0) ? 'failure' : 'success',
    faults: [{ kind: 'kill', worker: 0, atMs: 250, restartAfterMs: 20 }],
    makeKernel: (options, ports, nowMs) =>
      (kernel = new ThrowingKernel(options, ports, nowMs, throwsAt)),
  });
  simulation.submit(workloadOf('one', FIRST, ['worse', 'top', 'r-0']), { client: 'one' });
  simulation.submit(workloadOf('two', SECOND, ['last', 'bad']), { client: 'two', atMs: 150 });
  await simulation.run({ maxMs: MINUTE_MS });
  const { scheduler, clients } = simulation;
  scheduler.enqueue({ op: 'retry', client: 'two', keys: ['bad'] });
  await simulation.pass(1000);
  await simulation.run({ maxMs: MINUTE_MS });
  for (const client of clients.values()) {
    for (const key of client.wanted) {
      expect([key, client.statusOf(key)]).not.toEqual([key, 'pending']);
    }
  }
  scheduler.enqueue({ op: 'client-releases-keys', client: 'one', keys: ['worse', 'r-0'] });
  scheduler.enqueue({ op: 'client-releases-keys', client: 'two', keys: ['last', 'bad'] });
  scheduler.enqueue({ op: 'remove-client', client: 'one' });
  await simulation.pass(1000);
  expectNothingHeld(simulation);
  expect(new Set(kernel.sentRuns).size).toBe(kernel.sentRuns.length);
  const message = simulation.logged.find((line) => line.includes('failed and was dropped'));
  return { mutations: kernel.mutations, message };
}

function workloadOf(name: string, graph: TerseGraph, keys: string[]) {
  const tasks = graphTasks(graph).map(({ key, dependencies, ...task }): GraphTask => {
    return { ...task, key, dependencies };
  });
  return {
    name,
    tasks,
    keys,
    durationsS: Float64Array.from(tasks, () => 0.1),
    nbytes: Float64Array.from(tasks, () => 1000),
  };
}

function expectNothingHeld(simulation: Simulation): void {
  const { cluster } = simulation.kernel;
  expect([...cluster.tasks.keys()]).toEqual([]);
  const { workers } = (
    simulation as unknown as {
      world: { workers: Map<string, { store: { items: Map<string, unknown> } }> };
    }
  ).world;
  for (const worker of cluster.workersByRank) {
    expect(worker.processing.size + worker.endingRuns.size).toBe(0);
    expect([...(workers.get(worker.address)?.store.items.keys() ?? [])]).toEqual([]);
  }
}

it('wherever the handling of a stimulus fails, all futures settle, nothing is held, and the scheduler serves on', async () => {
  const whole = await play(Infinity);
  expect(whole.message).toBeUndefined();
  const { YARDMASTER_THROW: only } = process.env;
  const step = only === undefined ? stride(29) : 1;
  const some = 1 + Math.floor(Math.random() * step);
  const [from = 1, to = from] = only?.split('-').map(Number) ?? [some, whole.mutations];
  const broken: string[] = [];
  for (let throwsAt = from; throwsAt <= to; throwsAt += step) {
    try {
      const { message } = await play(throwsAt);
      if (message === undefined) broken.push(`${throwsAt}: it was not reported`);
    } catch (error) {
      broken.push(
        `${throwsAt}: ${only === undefined ? (error as Error).message : (error as Error).stack}`,
      );
    }
  }
  expect(broken.slice(0, 10)).toEqual([]);
});

it('whatever workers, clients and plugins say, and wherever the kernel fails at it, what is asked for is done in the end, and each time in the same way', () => {
  let thrown = 0;
  const property = fc.property(
    hostileSteps,
    configurations,
    fc.nat(3000),
    (steps, configuration, throwsAt) => {
      const [kernel, again] = [1, 2].map(() =>
        withstand(steps, configuration, (options, ports) => {
          return new ThrowingKernel(options, ports, 0, throwsAt + 1, 'itself');
        }),
      ) as [ThrowingKernel, ThrowingKernel];
      expect(again.checkNow(true)).toEqual(kernel.checkNow(true));
      if (kernel.thrown !== undefined) thrown++;
    },
  );
  fc.assert(property, effort(250));
  expect(thrown).toBeGreaterThan(0);
});
