import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Comparison,
  comparePolicies,
  loadWorkload,
  policyVariant,
  readVariant,
  simulate,
  Simulation,
  type SimulationOptions,
} from '../../../adapters/simulator/index.ts';
import {
  lowerBoundS,
  PLANNERS,
  type PlannerName,
  problemOf,
} from '../../../adapters/simulator/lab/offline.ts';
import { KnownRuns, measure } from '../../../adapters/simulator/lab/runs.ts';
import { optionsOf, QUICK, settingsOf, SPREAD } from '../../../adapters/simulator/lab/settings.ts';
import { interval, student } from '../../../adapters/simulator/lab/statistics.ts';
import { type CostedTask, graphWorkload } from '../../../adapters/workloads/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-corpus-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Links carry 100 MB in a second; messages take no time. */
const NETWORK = { bandwidth: 100e6, latencyMs: 0 };

describe('intervals', () => {
  it.each([
    [1, 12.706],
    [2, 4.303],
    [3, 3.182],
    [10, 2.228],
    [30, 2.042],
    [1000, 1.962],
  ])("Student's quantile at %i degrees of freedom is %f", (freedom, quantile) => {
    expect(Math.abs(student(freedom) / quantile - 1)).toBeLessThan(0.0015);
  });

  it('an interval is the mean with its error; one value has none', () => {
    const { mean, margin } = interval([1, 2, 3, 4])!;
    expect(mean).toBe(2.5);
    expect(margin).toBeCloseTo(3.182 * Math.sqrt(5 / 3 / 4), 2);
    expect(interval([1])).toBeUndefined();
  });
});

describe('the lower bound', () => {
  const boundS = (tasks: readonly CostedTask[], options: SimulationOptions): number =>
    lowerBoundS(problemOf(graphWorkload('graph', tasks), { network: NETWORK, ...options }));

  it('is the critical path on the fastest worker', () => {
    const chain = [
      { key: 'a', durationS: 3 },
      { key: 'b', durationS: 1, needs: ['a'] },
      { key: 'c', durationS: 1 },
    ];
    expect(boundS(chain, { workers: [{ speed: 2 }, { speed: 1 }] })).toBe(2);
  });

  it('is the work divided by all threads and their speeds', () => {
    const tasks = Array.from({ length: 12 }, (_, n) => ({ key: `t-${n}`, durationS: 1 }));
    expect(boundS(tasks, { workers: [{ threads: 2, speed: 2 }, { threads: 2 }] })).toBe(2);
  });

  it('has inputs computed where they are needed, or moved there, whichever is sooner', () => {
    const inputs = Array.from({ length: 4 }, (_, n) => ({
      key: `in-${n}`,
      durationS: 1,
      nbytes: 100e6,
    }));
    const join = [...inputs, { key: 'join', durationS: 0.5, needs: inputs.map(({ key }) => key) }];
    // Two are computed by the one thread while two others come over the link.
    expect(boundS(join, { workers: 8 })).toBe(2.5);
    // With two threads it computes two thirds of them in the time in which the link carries one.
    expect(boundS(join, { workers: 8, worker: { threads: 2 } })).toBeCloseTo(0.5 + 4 / 3, 9);
    // Small results move in no time.
    const small = join.map((task) => ({ ...task, nbytes: 1000 }));
    expect(boundS(small, { workers: 8 })).toBe(1.5);
  });

  it('has nothing to say about transfers that share no link', async () => {
    const inputs = Array.from({ length: 8 }, (_, n) => `in-${n}`);
    const join = [
      ...inputs.map((key) => ({ key, durationS: 1, nbytes: 100e6 })),
      { key: 'join', durationS: 0.5, needs: inputs },
    ];
    const options = { workers: 8, network: { ...NETWORK, sharing: 'none' } } as const;
    const { overrides } = policyVariant('root-ish');
    const { makespanS } = await simulate(graphWorkload('join', join), { ...options, overrides });
    expect(makespanS).toBeCloseTo(2.5, 2);
    expect(boundS(join, options)).toBeLessThanOrEqual(makespanS);
  });

  it.each(['tree:5@100ms,10MB', 'shuffle:5@100ms,5MB', 'xarray-25', 'overlap:5,5@50ms,20MB'])(
    'is below what %s takes under any policy',
    async (name) => {
      const workload = await loadWorkload(name);
      for (const policies of ['default', 'family', 'locality-first', 'queuing/mars']) {
        const options = { workers: 3, worker: { threads: 2 }, durations: { spread: 0.2 }, seed: 3 };
        const { overrides } = policyVariant(policies);
        const { makespanS } = await simulate(workload, { ...options, overrides });
        expect(makespanS).toBeGreaterThan(lowerBoundS(problemOf(workload, options)));
      }
    },
  );
});

it('the setting "known" tells the scheduler what an earlier run of the graph would have told it', async () => {
  const workload = await loadWorkload('tree:8@100ms,1MB');
  const [unknown, known] = settingsOf(['8x2'], ['1Gbit'], ['ample'], ['unknown', 'known']);
  const { maxMs, ...options } = optionsOf(workload, unknown!, 1);
  await using simulation = await Simulation.start({
    ...options,
    durations: { spread: 0 },
  });
  simulation.submit(workload);
  await simulation.run({ maxMs });
  const learnt = simulation.kernel.cluster.knowledge();
  const { knowledge = [] } = optionsOf(workload, known!, 1);
  expect(knowledge).toEqual(
    learnt.map((prefix) => ({
      ...prefix,
      durationS: expect.closeTo(prefix.durationS) as number,
      spread: SPREAD,
    })),
  );
});

describe('schedules that know everything', () => {
  const planOf = (
    planner: PlannerName,
    tasks: readonly CostedTask[],
    options: SimulationOptions,
  ): { makespanS: number; startsS: number[]; workers: number[] } => {
    const problem = problemOf(graphWorkload('graph', tasks), { network: NETWORK, ...options });
    const { places, makespanS } = PLANNERS[planner](problem);
    const slots = tasks.map(({ key }) => {
      return places.get(problem.tasks.find((task) => task.key === key)!)!;
    });
    return {
      makespanS,
      startsS: slots.map(({ startS }) => startS),
      workers: slots.map(({ worker }) => worker.number),
    };
  };

  it('HEFT puts a short task into a gap before a task that was placed earlier', () => {
    // "big" waits for its input, which takes a second to arrive, and is more urgent than "filler".
    const tasks = [
      { key: 'first', durationS: 1, nbytes: 100e6 },
      { key: 'second', durationS: 1, nbytes: 100e6 },
      { key: 'big', durationS: 9, needs: ['first', 'second'] },
      { key: 'filler', durationS: 0.5 },
      { key: 'other', durationS: 0.4 },
    ];
    const { startsS, makespanS, workers } = planOf('heft', tasks, { workers: 2 });
    expect(makespanS).toBe(11);
    expect(startsS[2]).toBe(2);
    expect(Math.max(startsS[3]!, startsS[4]!)).toBeLessThan(2);
    expect(new Set(workers).size).toBe(2);
  });

  it('HEFT lets transfers pass each other where they share no link', () => {
    const inputs = Array.from({ length: 4 }, (_, n) => `in-${n}`);
    const join = [
      ...inputs.map((key) => ({ key, durationS: 1, nbytes: 100e6 })),
      { key: 'join', durationS: 0.5, needs: inputs },
    ];
    const network = { ...NETWORK, sharing: 'none' } as const;
    expect(planOf('heft', join, { workers: 4 }).makespanS).toBe(4.5);
    expect(planOf('heft', join, { workers: 4, network }).makespanS).toBe(2.5);
  });

  it('fast workers get the critical path', () => {
    const tasks = [
      { key: 'short', durationS: 1 },
      { key: 'a', durationS: 4, nbytes: 1000 },
      { key: 'b', durationS: 4, needs: ['a'] },
    ];
    const cluster = { workers: [{ speed: 1 }, { speed: 4 }] };
    for (const planner of ['heft', 'thrifty', 'blevel', 'lookahead'] as const) {
      expect(planOf(planner, tasks, cluster).workers.slice(1)).toEqual([1, 1]);
      expect(planOf(planner, tasks, cluster).makespanS).toBe(2);
    }
  });

  it('a lookahead leaves the input where its dependent will be', () => {
    // "a" ends sooner on a worker of its own, and then has to move to "b", or "b" to "a".
    const tasks = [
      { key: 'a', durationS: 1, nbytes: 400e6 },
      { key: 'b', durationS: 1.2, nbytes: 400e6 },
      { key: 'c', durationS: 1, needs: ['a', 'b'] },
    ];
    expect(planOf('heft', tasks, { workers: 2 }).makespanS).toBeCloseTo(6.2, 9);
    expect(planOf('lookahead', tasks, { workers: 2 }).makespanS).toBeCloseTo(3.2, 9);
  });

  it('one worker alone moves nothing', () => {
    const tasks = [
      { key: 'a', durationS: 1, nbytes: 1e12 },
      { key: 'b', durationS: 1, nbytes: 1e12 },
      { key: 'c', durationS: 1, needs: ['a', 'b'] },
    ];
    const { workers, makespanS } = planOf('single', tasks, { workers: [{}, { threads: 2 }] });
    expect(workers).toEqual([1, 1, 1]);
    expect(makespanS).toBe(2);
  });

  it.each(Object.keys(PLANNERS) as PlannerName[])(
    'the plan of %s takes about what it was planned to take',
    async (plan) => {
      const tasks = Array.from({ length: 30 }, (_, n) => ({
        key: `t-${n}`,
        durationS: 1 + (n % 7) / 4,
        nbytes: 1000,
        needs: n < 10 ? [] : [`t-${n - 10}`, `t-${(n * 7) % 10}`],
      }));
      const workload = graphWorkload('graph', tasks);
      const options = { workers: [{ threads: 2, speed: 2 }, { threads: 2 }], network: NETWORK };
      const { figures } = await measure({ workload, variant: { name: plan, plan }, options });
      const planned = PLANNERS[plan](problemOf(workload, options));
      expect(figures?.fallbacks).toBe(0);
      // A worker does not wait for a more urgent task, as a plan may.
      expect(Math.abs(figures!.makespanS / planned.makespanS - 1)).toBeLessThan(0.05);
    },
  );
});

describe('a corpus', () => {
  const fork = graphWorkload('fork', [
    { key: 'root', durationS: 0.5, nbytes: 20e6 },
    ...Array.from({ length: 12 }, (_, n) => ({
      key: `leaf-${n}`,
      durationS: 0.2,
      nbytes: 30e6,
      needs: ['root'],
    })),
    { key: 'end', durationS: 0.1, needs: Array.from({ length: 12 }, (_, n) => `leaf-${n}`) },
  ]);
  const variants = ['default', 'direct', 'root-ish'].map(policyVariant);
  const settings = settingsOf(['8x2', 'unequal'], ['1Gbit'], ['ample', 'tight']);

  const measured = async (file?: string, jobs?: number): Promise<Comparison> =>
    comparePolicies([fork, await loadWorkload('tree:4@100ms,10MB')], variants, {
      settings,
      seeds: 2,
      offline: true,
      known: new KnownRuns(file),
      ...(jobs === undefined ? {} : { jobs }),
    });

  it('has every instance with bounds, and the same figures in threads', async () => {
    const report = await measured();
    expect(report.instances).toHaveLength(8);
    for (const { boundsS, offlineS, runs } of report.instances) {
      expect(Object.keys(runs)).toEqual(['default', 'direct', 'root-ish']);
      boundsS.forEach((boundS, seed) => {
        expect(offlineS[seed]).toBeGreaterThanOrEqual(boundS);
        for (const { seeds } of Object.values(runs)) {
          expect(seeds[seed]?.makespanS).toBeGreaterThanOrEqual(boundS);
        }
      });
    }
    const [first, second] = report.summaries;
    expect(first?.makespan).toEqual({ mean: 1, low: 1, high: 1 });
    expect(second?.makespan.low).toBeLessThan(second!.makespan.mean);
    const ratios = report.instances.map(({ runs }) => {
      const logs = runs['direct']!.seeds.map(({ makespanS }, seed) =>
        Math.log(makespanS / runs['default']!.seeds[seed]!.makespanS),
      );
      return Math.exp((logs[0]! + logs[1]!) / 2);
    });
    expect(second?.worst?.ratio).toBeCloseTo(Math.max(...ratios), 12);
    expect(JSON.stringify(await measured(undefined, 2))).toBe(JSON.stringify(report));
  });

  it('tight memory makes workers spill or pause, ample memory does not', async () => {
    const { instances } = await measured();
    for (const { setting, runs } of instances) {
      if (!setting.includes('ample')) continue;
      for (const { seeds } of Object.values(runs)) {
        expect(seeds.every(({ spilledBytes, pauses }) => spilledBytes + pauses === 0)).toBe(true);
      }
    }
    const [summary] = (await measured()).summaries;
    expect(summary?.pressed).toBeGreaterThan(0);
    expect(summary?.pressed).toBeLessThanOrEqual(4);
  });

  it('an interrupted comparison continues where it was, and ends the same', async () => {
    const file = join(folder, 'runs.jsonl');
    const whole = await measured(file);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    writeFileSync(file, `${lines.slice(0, 20).join('\n')}\n${lines[20]!.slice(0, 40)}`);
    expect(JSON.stringify(await measured(file))).toBe(JSON.stringify(whole));
    const again = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(again.length).toBe(lines.length + 1); // The torn line is still there.
    await measured(file);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n').length).toBe(again.length);
  });

  it('a policy in a module is measured again when its text, or that of what it imports, changes', async () => {
    const file = join(folder, 'runs-of-pack.jsonl');
    const pack = join(folder, 'pack.mjs');
    writeFileSync(join(folder, 'weight.mjs'), 'export const weight = 1;');
    writeFileSync(
      pack,
      `import { weight } from './weight.mjs';
       export default { kind: 'policy', slot: 'workerSelection', name: 'pack', apiVersion: 1,
         create: () => ({ score: (task, worker, missing) => missing + weight * worker.processing.size }) };`,
    );
    const runsMade = async (): Promise<number> => {
      const options = { settings: QUICK, seeds: 1, known: new KnownRuns(file) };
      await comparePolicies([fork], [policyVariant('default'), await readVariant(pack)], options);
      return readFileSync(file, 'utf8').trimEnd().split('\n').length;
    };
    expect(await runsMade()).toBe(2);
    expect(await runsMade()).toBe(2);
    writeFileSync(join(folder, 'weight.mjs'), 'export const weight = 2;');
    expect(await runsMade()).toBe(3);
  });
});

it('the command prints a table, and writes pages and figures that repeat', async () => {
  const corpus = mkdtempSync(join(folder, 'instances-'));
  const instance = {
    name: 'two steps',
    schemaVersion: '1.5',
    workflow: {
      specification: {
        tasks: [
          { id: 'a', name: 'make', parents: [], children: ['b'], outputFiles: ['f'] },
          { id: 'b', name: 'use', parents: ['a'], children: [], inputFiles: ['f'] },
        ],
        files: [{ id: 'f', sizeInBytes: 1e6 }],
      },
      execution: {
        tasks: [
          { id: 'a', runtimeInSeconds: 2 },
          { id: 'b', runtimeInSeconds: 1 },
        ],
      },
    },
  };
  writeFileSync(join(corpus, 'one.json'), JSON.stringify(instance));
  writeFileSync(join(corpus, 'two.dot'), 'digraph { node [duration=2]; a -> b [size="1MB"] }');
  const output = join(folder, 'out');
  const command = [createRequire(import.meta.url).resolve('#cli'), 'lab', 'corpus'];
  const lab = async (): Promise<string> => {
    const flags = ['--corpus', corpus, '--quick', '--policies', 'calm', '--output', output];
    return (await promisify(execFile)(process.execPath, [...command, ...flags])).stdout;
  };
  const table = await lab();
  expect(table).toMatch(/^dask +1\.000 \(1\.00-1\.00\)/m);
  expect(table).toMatch(/^calm +1\.000/m);
  const page = readFileSync(join(output, 'corpus.html'), 'utf8');
  expect(page.match(/<svg /g)).toHaveLength(2);
  expect(page).not.toMatch(/<script|https?:/);
  const figures = readFileSync(join(output, 'corpus.json'), 'utf8');
  expect((JSON.parse(figures) as Comparison).instances.map(({ workload }) => workload)).toEqual([
    'one',
    'two.dot',
  ]);
  expect(await lab()).toBe(table);
  expect(readFileSync(join(output, 'corpus.json'), 'utf8')).toBe(figures);
});
