import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import {
  calibrate,
  type CompareOptions,
  comparePolicies,
  type FigureName,
  type PolicyVariant,
  policyVariant,
  readVariant,
  Simulation,
  worstCase,
} from '../../../adapters/simulator/index.ts';
import { graphWorkload, type Workload } from '../../../adapters/workloads/index.ts';
import { ActiveMemoryManagerPolicy, type SuggestionGenerator } from '../../../core/api/index.ts';
import { LogWriter } from '../../../core/log/log-writer.ts';
import { RecordingKernel } from '../../../core/log/recording-kernel.ts';
import { recordSimulation } from '../dashboard/simulated-recording.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-laboratory-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const ROOT = new URL('../../..', import.meta.url).pathname;
const HISTORIES = join(ROOT, 'test/histories');
const CLI = createRequire(import.meta.url).resolve('#cli');
const run = promisify(execFile);

async function lab(...args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [CLI, 'lab', ...args], { cwd: folder })).stdout;
}

interface Run {
  readonly error?: string;
  readonly figures?: Readonly<Record<FigureName, number>>;
}

/** The run of each variant with the first seed. */
async function compared(
  workload: Workload,
  variants: readonly PolicyVariant[],
  options: CompareOptions = { workers: 3 },
): Promise<Run[]> {
  const { instances } = await comparePolicies([workload], variants, { ...options, seeds: 1 });
  return variants.map(({ name }) => {
    const { error, seeds } = instances[0]!.runs[name]!;
    return { error, figures: seeds[0] };
  });
}

const FIRST = policyVariant('dask');
const SECOND = policyVariant('default');
const SEARCH = { workers: 3, steps: 60, limits: { fewestTasks: 3, mostTasks: 10 }, seed: 9 };

/** Chains on one worker each, whose ends are fetched by others. */
function chainsAndPairs(): Workload {
  const chain = Array.from({ length: 24 }, (_, index) => index);
  const cost = { durationS: 0.08, nbytes: 3e6 };
  return graphWorkload('chains and pairs', [
    ...chain.map((index) => ({ key: `a-${index}`, ...cost })),
    ...chain.map((index) => ({ key: `b-${index}`, needs: [`a-${index}`], ...cost })),
    ...chain.map((index) => ({ key: `c-${index}`, needs: [`b-${index}`], ...cost })),
    ...chain.map((index) => {
      return { key: `pair-${index}`, needs: [`c-${index}`, `c-${(index + 7) % 24}`], ...cost };
    }),
  ]);
}

it('a search for the worst case ends with one that is worse than where it began', async () => {
  const found: number[] = [];
  const start = await worstCase(FIRST, SECOND, { ...SEARCH, steps: 1 });
  const worst = await worstCase(FIRST, SECOND, {
    ...SEARCH,
    onWorse: ({ ratio }) => found.push(ratio),
  });
  expect(worst.ratio).toBeGreaterThan(start.ratio);
  expect(worst.ratio).toBeGreaterThan(1.05);
  expect(found).toEqual(found.toSorted((one, other) => one - other));
  expect(found.at(-1)).toBe(worst.ratio);
});

it('the same seed finds the same worst case, and another one a different one', async () => {
  const search = { ...SEARCH, steps: 20 };
  const worst = await worstCase(FIRST, SECOND, search);
  expect(await worstCase(FIRST, SECOND, search)).toEqual(worst);
  expect(await worstCase(FIRST, SECOND, { ...search, seed: 6 })).not.toEqual(worst);
});

it('the worst case is as bad when it is compared again', async () => {
  const { instance, ratio, firstS } = await worstCase(FIRST, SECOND, { ...SEARCH, steps: 30 });
  const { tasks, bandwidth } = instance;
  const [second, first] = await compared(graphWorkload('worst', tasks), [SECOND, FIRST], {
    workers: 3,
    seeds: 1,
    network: { bandwidth },
    durations: { spread: 0 },
  });
  expect(first?.figures?.makespanS).toBeCloseTo(firstS, 9);
  expect(firstS / second!.figures!.makespanS).toBeCloseTo(ratio, 9);
});

it('the models of a recorded cluster are found again', async () => {
  const file = join(folder, 'run.ylog');
  const parts: Uint8Array[] = [];
  let writer: LogWriter | undefined;
  await using simulation = await Simulation.start({
    workers: 3,
    worker: { threads: 2 },
    network: { bandwidth: 40e6, latencyMs: 3 },
    durations: { overheadMs: 7 },
    heartbeatMs: 200,
    kernelLog: (config) => {
      const header = {
        version: 'test',
        schedulerId: 'laboratory',
        createdAtMs: 0,
        ...({ holds: 'all', segment: 1 } as const),
        config: config as unknown as Readonly<Record<string, unknown>>,
        folder: '/',
      };
      writer = new LogWriter(new MsgpackCodec(), (bytes) => parts.push(bytes.slice()), header, 0);
      return writer;
    },
  });
  simulation.submit(chainsAndPairs());
  await simulation.run();
  const real = simulation.report();
  const { kernel } = simulation;
  if (!(kernel instanceof RecordingKernel)) throw new Error('nothing was recorded');
  writer?.end(kernel.checkNow(true), simulation.nowMs);
  writeFileSync(file, Buffer.concat(parts));
  const { fitted, tasks, realS, error } = await calibrate(file);
  expect(tasks).toBe(real.tasks);
  expect(realS).toBeCloseTo(real.makespanS, 1);
  expect(fitted.threads).toEqual([2, 2, 2]);
  expect(fitted.overheadMs).toBeCloseTo(7, 0);
  expect(fitted.latencyMs).toBeCloseTo(3, 0);
  expect(fitted.bandwidth).toBeGreaterThan(20e6);
  expect(fitted.bandwidth).toBeLessThan(60e6);
  expect(Math.abs(error)).toBeLessThan(0.05);
});

it.each([
  ['throws', 'throw new Error("no idea")', 'threw: no idea'],
  ['answers NaN', 'return NaN', 'NaN'],
])('a policy that %s every time has no figures, but an error', async (name, body, says) => {
  const file = join(folder, `${name.replace(' ', '-')}.mjs`);
  writeFileSync(
    file,
    `export default { kind: 'policy', slot: 'workerSelection', name: 'broken', apiVersion: 1, create: () => ({ score() { ${body}; } }) };
     export const other = { kind: 'policy', slot: 'workerSelection', name: 'other', apiVersion: 1, create: () => ({ score: () => 1 }) };`,
  );
  const variants = [
    policyVariant('default'),
    await readVariant(file),
    await readVariant(`${file}#other`),
  ];
  const [first, broken, other] = await compared(chainsAndPairs(), variants);
  expect(first?.figures?.fallbacks).toBe(0);
  expect(broken?.figures).toBeUndefined();
  expect(broken?.error).toContain('policy "broken" of slot workerSelection');
  expect(broken?.error).toContain(says);
  expect(other?.figures).toBeDefined();
  await expect(
    worstCase(await readVariant(file), SECOND, { ...SEARCH, steps: 1 }),
  ).rejects.toMatchObject({
    code: 'ERR_POLICY',
  });
});

describe('a stealing policy', () => {
  /** Many tasks that wait where their input is, so that there is much to steal. */
  const uneven = (): Workload =>
    graphWorkload('uneven', [
      { key: 'seed-0', durationS: 0.1, nbytes: 1e6 },
      ...Array.from({ length: 5 }, (_, n) => ({
        key: `half-${n}`,
        durationS: 1,
        needs: ['seed-0'],
      })),
      ...Array.from({ length: 5 }, (_, n) => ({
        key: `long-${n}`,
        durationS: 2,
        needs: ['seed-0'],
      })),
      ...Array.from({ length: 5 }, (_, n) => ({
        key: `last-${n}`,
        durationS: 3,
        needs: ['seed-0'],
      })),
    ]);

  async function stolen(stealing: object): Promise<Run | undefined> {
    const policies = { stealing: { use: { name: 'odd', ...stealing } }, queuing: 'root-ish' };
    const variant = { name: 'odd', overrides: { scheduler: { policies } } };
    const [run] = await compared(uneven(), [variant]);
    return run;
  }

  const yes = (): boolean => true;
  const refuse = (): never => {
    throw new Error('no idea');
  };

  it.each([
    ['begin', { begin: refuse, pays: yes }, 'threw: no idea'],
    ['mayTake', { mayTake: refuse }, 'threw: no idea'],
    ['victims', { victims: refuse }, 'threw: no idea'],
    ['levelOf', { levelOf: refuse }, 'threw: no idea'],
    ['order', { order: refuse }, 'threw: no idea'],
    ['pays', { pays: refuse }, 'threw: no idea'],
    ['mayPay', { pays: yes, mayPay: refuse }, 'threw: no idea'],
    ['mayTake', { mayTake: () => 1 }, 'answered mayTake with 1'],
    ['victims', { victims: () => 1 }, 'answered victims with 1'],
    ['levelOf', { levelOf: () => NaN }, 'the cost level NaN'],
    ['order', { order: () => NaN }, 'answered order with NaN'],
    ['pays', { pays: () => NaN }, 'answered pays with NaN'],
  ])('whose %s fails every time has no figures, but an error: %o', async (_name, policy, says) => {
    const run = await stolen(policy);
    expect(run?.figures).toBeUndefined();
    expect(run?.error).toContain('policy "odd" of slot stealing');
    expect(run?.error).toContain(says);
    expect(run?.error).toContain('so it was each time');
  });

  it('that fails now and then keeps its figures, and the fallbacks are counted', async () => {
    let count = 0;
    const pays = (): boolean => {
      if (++count % 5 === 0) throw new Error('no idea');
      return true;
    };
    const run = await stolen({ pays });
    expect(run?.error).toBeUndefined();
    expect(run?.figures?.fallbacks).toBeGreaterThan(0);
  });

  it('that is right each time has figures without fallbacks', async () => {
    const run = await stolen({ mayTake: yes, levelOf: () => 3, pays: yes });
    expect(run?.figures?.fallbacks).toBe(0);
  });
});

describe('a policy of the memory manager', () => {
  async function managed(failsIn: (round: number) => boolean): Promise<Run | undefined> {
    let rounds = 0;
    class Odd extends ActiveMemoryManagerPolicy {
      override *run(): SuggestionGenerator {
        if (failsIn(++rounds)) throw new Error('no idea');
        yield* [];
      }
    }
    const overrides = {
      scheduler: { activeMemoryManager: { interval: '1s', policies: [{ use: Odd }] } },
    };
    const variant = { name: 'odd', overrides };
    const [run] = await compared(chainsAndPairs(), [variant], { workers: 1 });
    return run;
  }

  it('that fails in each round has no figures, but an error', async () => {
    const run = await managed(() => true);
    expect(run?.figures).toBeUndefined();
    expect(run?.error).toContain('policy "Odd" of the Active Memory Manager threw: no idea');
    expect(run?.error).toContain('so it was each time');
  });

  it('that fails in one round keeps its figures, and the failure is counted', async () => {
    const run = await managed((round) => round === 1);
    expect(run?.error).toBeUndefined();
    expect(run?.figures?.fallbacks).toBe(1);
  });
});

it('a policy that fails now and then keeps its figures, and the fallbacks are counted', async () => {
  let count = 0;
  const score = (): number => (++count % 50 === 0 ? NaN : 1);
  const policies = { workerSelection: { use: { name: 'moody', score } } };
  const moody = { name: 'moody', overrides: { scheduler: { policies } } };
  const [run] = await compared(chainsAndPairs(), [moody]);
  expect(run?.error).toBeUndefined();
  expect(run?.figures?.fallbacks).toBeGreaterThan(0);
});

it('a policy is named by its export, too, and a wrong one says which there are', async () => {
  const file = join(folder, 'several.mjs');
  const policy = (name: string): string =>
    `{ kind: 'policy', slot: 'ordering', name: '${name}', apiVersion: 1, create: () => ({ order: () => [] }) }`;
  writeFileSync(file, `export const a = ${policy('a')}; export const b = ${policy('b')};`);
  expect(await readVariant(`${file}#a`)).toMatchObject({
    overrides: { scheduler: { policies: { ordering: { use: `${file}#a` } } } },
  });
  await expect(readVariant(`${file}#c`)).rejects.toThrow(/has no export "c"/);
  await expect(readVariant(file)).rejects.toThrow(/pick one of its exports: .*several.mjs#a/);
});

it.each([
  ['between two graphs', 0],
  ['in the middle of a graph', 400],
])('a recording that began %s is calibrated', async (_when, openMs) => {
  const file = join(folder, `began-${openMs}.ylog`);
  const parts: Uint8Array[] = [];
  await using simulation = await Simulation.start({
    workers: 3,
    worker: { threads: 2 },
    network: { bandwidth: 40e6, latencyMs: 3 },
    durations: { overheadMs: 7 },
    heartbeatMs: 200,
  });
  const { kernel } = simulation;
  if (!(kernel instanceof RecordingKernel)) throw new Error('nothing can be recorded');
  simulation.submit(chainsAndPairs());
  if (openMs > 0) await simulation.pass(openMs);
  else await simulation.run();
  const begunMs = simulation.nowMs;
  const folderName = '/';
  const header = {
    version: 'test',
    schedulerId: 'x',
    createdAtMs: 0,
    ...({ holds: 'all', segment: 1 } as const),
    config: {},
    folder: folderName,
  };
  let writer: LogWriter | undefined;
  const makeLog = (): LogWriter => {
    const write = (bytes: Uint8Array): void => void parts.push(bytes.slice());
    writer = new LogWriter(new MsgpackCodec(), write, header, simulation.nowMs);
    return writer;
  };
  const failed = (cause: unknown): never => {
    throw cause as Error;
  };
  kernel.record(makeLog, () => undefined, failed);
  if (openMs === 0) {
    const again = chainsAndPairs();
    simulation.submit({
      ...again,
      tasks: again.tasks.map(({ key, dependencies, ...rest }) => ({
        ...rest,
        key: `again-${key}`,
        dependencies: dependencies.map((need) => `again-${need}`),
      })),
      keys: again.keys.map((key) => `again-${key}`),
    });
  }
  await simulation.run();
  writer?.end(kernel.checkNow(true), simulation.nowMs);
  writeFileSync(file, Buffer.concat(parts));
  const { fitted, tasks, realS, error } = await calibrate(file);
  expect(fitted.threads).toEqual([2, 2, 2]);
  expect(realS).toBeCloseTo((simulation.nowMs - begunMs) / 1000, 1);
  if (openMs === 0) expect(tasks).toBe(96);
  else expect(tasks).toBeLessThan(96);
  expect(Math.abs(error)).toBeLessThan(0.15);
});

it('a worker that takes the place of one that died is no further one', async () => {
  const file = join(folder, 'replaced.ylog');
  await recordSimulation(file);
  expect((await calibrate(file)).fitted.threads).toEqual([2, 2, 2, 2]);
});

it('a recording in which nothing was computed cannot be calibrated', async () => {
  const file = join(folder, 'short.ylog');
  const whole = readFileSync(join(HISTORIES, 'tree-whose-worker-dies.ylog'));
  writeFileSync(file, whole.subarray(0, 16));
  await expect(calibrate(file)).rejects.toThrow(/ERR_|no graph|header/);
});

it.each(['', '--latency 300 --spread 0.4 --memory 3GB --workers 3'])(
  'the worst case that the command writes can be compared again as it says: %s',
  async (cluster) => {
    const modules = mkdirSync(join(folder, 'node_modules'), { recursive: true });
    if (modules !== undefined) symlinkSync(ROOT, join(modules, 'yardmaster'));
    const search = `worst-case balanced default --steps 30 --tasks 8 -o worst.mjs ${cluster}`;
    const found = await lab(...search.trim().split(' '));
    const [, ratio] = /: ([\d.]+) times as long/.exec(found)!;
    const [, command] = /yardmaster lab (compare .*)$/m.exec(found)!;
    const again = await lab(...command!.split(' '));
    expect(again).toMatch(
      new RegExp(`balanced +[\\d.]+ s \\(${ratio!.replace('.', '\\.')}(?: ±.*)?\\)`),
    );
  },
);

it('a search for a worst case begins with the bandwidth that is given', async () => {
  const { instance } = await worstCase(FIRST, SECOND, {
    ...{ workers: 2, steps: 0, network: { bandwidth: 7e6 } },
  });
  expect(instance.bandwidth).toBe(7e6);
});

it.each([
  ['compare empty --policies default', 'there is no graph to run'],
  ['corpus tree:3 --full --clusters 8x2', "option '--full' cannot be used with option '--clusters"],
])('the command refuses what would be nothing, or would be ignored: %s', async (flags, message) => {
  mkdirSync(join(folder, 'empty'), { recursive: true });
  await expect(lab(...flags.split(' '))).rejects.toThrow(message);
});

it('a simulation has one configuration', async () => {
  const simulated = run(
    process.execPath,
    [CLI, 'simulate', 'tree:3', '--policies', 'mine.yaml', '--config', 'other.yaml'],
    { cwd: folder },
  );
  await expect(simulated).rejects.toThrow('--config names another one; leave one out');
});

it('the command says how well a recording is simulated', async () => {
  const printed = await lab('calibrate', join(HISTORIES, 'shuffle-in-the-order-of-dask.ylog'));
  expect(printed).toMatch(/^real makespan +[\d.]+ s$/m);
  expect(printed).toMatch(/^simulated +[\d.]+ s, [+-][\d.]+ %$/m);
});
