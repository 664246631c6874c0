import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { simulate, Simulation, type SimulationOptions } from '../../../adapters/simulator/index.ts';
import { SimulatedNetwork } from '../../../adapters/simulator/network.ts';
import { DEFAULT_NETWORK } from '../../../adapters/simulator/options.ts';
import { chains, graphWorkload, map, shuffle, tree } from '../../../adapters/workloads/index.ts';
import type { TaskView, WorkerView } from '../../../core/api/index.ts';

it('tasks of ten milliseconds on two workers of one thread take half of the time of one', async () => {
  const one = await simulate(map(100), { workers: 1 });
  const two = await simulate(map(100), { workers: 2 });
  expect(one.makespanS).toBeGreaterThan(1);
  expect(one.makespanS).toBeLessThan(1.1);
  expect(two.makespanS / one.makespanS).toBeCloseTo(0.5, 1);
  expect(one).toMatchObject({ tasks: 100, runs: 100, failed: 0, movedBytes: 0 });
  expect(one.idleShare).toBeLessThan(0.1);
});

it('a shuffle moves results between workers, and validates', async () => {
  const report = await simulate(shuffle(6), { workers: 3, validate: true });
  expect(report).toMatchObject({ tasks: 48, runs: 48, failed: 0 });
  expect(report.movedBytes).toBeGreaterThan(0);
});

it('each simulation takes the course that it took when these hashes were written down', async () => {
  // A hash may change for a reason alone: another decision, another message, another moment of one.
  const drawn = { spread: 0.4, speedSpread: 0.3, overheadMs: 0.2, schedulerMs: 0.01 };
  const memory = { worker: { threads: 2, memoryLimitBytes: 100e6 } };
  const bulky = { ...shuffle(12), nbytes: shuffle(12).nbytes.map(() => 5e6) };
  const reports = [
    await simulate(tree(9), { workers: 40 }),
    await simulate(map(500), { workers: 7, durations: drawn, seed: 3 }),
    await simulate(bulky, { workers: 5, ...memory, network: { jitterMs: 1 }, durations: drawn }),
    await simulate(chains(9, 8), {
      workers: 4,
      durations: drawn,
      faults: [
        { kind: 'kill', worker: 1, atMs: 15, restartAfterMs: 20 },
        { kind: 'pause', worker: 2, atMs: 10, forMs: 25 },
      ],
    }),
  ];
  expect(reports.map(({ traceHash }) => traceHash)).toEqual([
    'dd83dd1da14bcc757cb3d3254518bc68a2bc7b79bbb134b6',
    'c11205b68a420c3631119c8a1214cbc6cb6599544a1fde93',
    '4bcd223fd22d77539cc82ace4621a893c4b730f85977c0d6',
    '98fd85adc3093efe4739615a47c2848d0bfff9d4f8a8ebec',
  ]);
});

describe('the same seed', () => {
  const options = {
    workers: 3,
    worker: { threads: 2 },
    durations: { spread: 0.5, speedSpread: 0.2, overheadMs: 0.3, schedulerMs: 0.05 },
    network: { jitterMs: 2 },
    faults: [
      { kind: 'kill', worker: 1, atMs: 40, restartAfterMs: 50 },
      { kind: 'straggle', worker: 0, atMs: 0, forMs: 100, factor: 5 },
    ],
  } as const;

  it('gives the same trace hash twice, and another seed another one', async () => {
    const first = await simulate(shuffle(8), { ...options, seed: 7 });
    const second = await simulate(shuffle(8), { ...options, seed: 7 });
    const third = await simulate(shuffle(8), { ...options, seed: 8 });
    expect(second).toEqual(first);
    expect(third.traceHash).not.toBe(first.traceHash);
  });
});

it.each([
  { kind: 'straggle', worker: 0, factor: 5 },
  { kind: 'delay', worker: 0, byMs: 20 },
] as const)('a fault that is over does not end one of its kind that lasts: %j', async (fault) => {
  const lasting = { ...fault, atMs: 0, forMs: 5000 };
  const short = { ...fault, atMs: 5, forMs: 10 };
  const options = { workers: 1, worker: { threads: 1 }, seed: 1 };
  const alone = await simulate(map(20), { ...options, faults: [lasting] });
  const both = await simulate(map(20), { ...options, faults: [lasting, short] });
  expect(both.makespanS).toBe(alone.makespanS);
});

it.each([
  [{ workers: 2, thread: 4 }, 'thread is not known'],
  [{ workers: 2.5 }, 'workers must be'],
  [{ worker: { threads: 0 } }, 'worker.threads must be a whole number of at least 1'],
  [{ network: { bandwidth: -1 } }, 'network.bandwidth must be a number above 0'],
  [{ faults: [{ kind: 'zap', atMs: 1 }] }, 'faults[0].kind must be one of'],
  [{ faults: [{ kind: 'pause', worker: 0, atMs: 1 }] }, 'faults[0].forMs must be'],
  [{ workers: 2, faults: [{ kind: 'kill', worker: 2, atMs: 1 }] }, 'must be below 2'],
  [{ maxMs: -1 }, 'maxMs must be'],
])('wrong options are refused by name: %j', async (options, says) => {
  const run = simulate(map(3), options as unknown as SimulationOptions);
  await expect(run).rejects.toMatchObject({
    code: 'ERR_CONFIG',
    message: expect.stringContaining(says) as string,
  });
});

it('results that are lost with a worker are computed again, and all are right', async () => {
  const evaluate = (key: string, inputs: readonly number[]): number =>
    inputs.reduce((sum, value) => (sum * 31 + value) % 1_000_003, key.length);
  const workload = tree(7);
  const expected = new Map<string, number>();
  for (const { key, dependencies } of workload.tasks) {
    expected.set(
      key,
      evaluate(
        key,
        dependencies.map((input) => expected.get(input)!),
      ),
    );
  }
  const simulation = await Simulation.start({
    workers: 3,
    durations: { overheadMs: 5 },
    validate: true,
    evaluate,
    faults: [{ kind: 'kill', worker: 2, atMs: 60 }],
  });
  simulation.submit(workload);
  await simulation.run();
  expect(simulation.report().runs).toBeGreaterThan(workload.tasks.length);
  const [wanted] = workload.keys;
  expect(simulation.valueOf(wanted!)).toBe(expected.get(wanted!));
  expect(simulation.logged).toEqual([]);
  await simulation.close();
});

it('a worker whose results do not fit into its memory spills', async () => {
  const workload = chains(8, 3);
  const nbytes = workload.nbytes.map(() => 30e6);
  const options = { workers: 1, worker: { memoryLimitBytes: 200e6 } };
  const report = await simulate({ ...workload, nbytes }, options);
  expect(report.spilledBytes).toBeGreaterThan(0);
  expect(report.peakWorkerBytes).toBeLessThan(240e6);
});

it('a pause between two long transfers is not taken for the end', async () => {
  // Transfers of half an hour, with a minute and a half before and after each, in which only heartbeats happen.
  const workload = graphWorkload(
    'there and back',
    Array.from({ length: 60 }, (_, n) => ({
      key: `t-${n}`,
      needs: n === 0 ? [] : [`t-${n - 1}`],
      nbytes: 200e9 + n * 2e9,
    })),
  );
  const select = ({ key }: TaskView, workers: readonly WorkerView[]): WorkerView | undefined =>
    workers[Number(key.slice(2)) % 2];
  const policies = { workerSelection: { use: { name: 'turns', reach: 'all', select } } };
  const { transfers } = await simulate(workload, {
    workers: 2,
    heartbeatMs: 400,
    network: { latencyMs: 90_000 },
    overrides: { scheduler: { policies, workStealing: { start: false } } },
  });
  expect(transfers).toBe(59);
});

it('a message waits at a link as long as transfers fill it, and not at one with capacity to spare', () => {
  const clock = new VirtualClock();
  const network = new SimulatedNetwork(clock, { ...DEFAULT_NETWORK, queueMs: 5 });
  const [slow, fast] = [network.connect(1e6), network.connect(10e6)];
  const waits = (): number[] => [network.waitMs(slow.outgoing), network.waitMs(fast.incoming)];
  network.transfer(slow, fast, 1e6, () => undefined);
  clock.advance(1);
  expect(waits()).toEqual([5, 0]);
  expect(network.waitMs(slow.outgoing, slow.incoming)).toBe(5);
  clock.advance(1000);
  expect(waits()).toEqual([0, 0]);
});

it('reports and orders of tasks wait behind transfers of the same links', async () => {
  const workload = { ...shuffle(6), nbytes: shuffle(6).nbytes.map(() => 2e6) };
  const options = { workers: 3, overrides: { scheduler: { workStealing: { start: false } } } };
  const free = await simulate(workload, options);
  const queued = await simulate(workload, { ...options, network: { queueMs: 20 } });
  expect(queued.makespanS - free.makespanS).toBeGreaterThan(0.02);
});

it('a simulation that cannot end says why', async () => {
  await expect(simulate(map(3), { workers: 0 })).rejects.toMatchObject({
    code: 'ERR_TIMEOUT',
    message: expect.stringContaining('nothing happens any more') as string,
  });
});
