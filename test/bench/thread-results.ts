/**
 * What a large result costs between the threads of one worker: `npm run bench -- thread-results`. A thread makes it,
 * then each of two threads reads it. Prints times, and how much the process occupied at most beyond what it did
 * before, in sizes of the result.
 */
import { Command } from 'commander';
import { SystemClock } from '../../adapters/clocks/index.ts';
import { collectGarbage } from '../../adapters/executors/collect-garbage.ts';
import { ThreadExecutor } from '../../adapters/executors/threads/index.ts';
import { packArguments, type TaskFunction } from '../../adapters/tasks/index.ts';
import { block, lengthOf } from './data-tasks.ts';
import { peakBytes, resetPeak, residentBytes } from './resident.ts';
import { median, print, type Result, round } from './side-by-side.ts';

const MIB = 1024 * 1024;
const READERS = 2;
const SETTLE_MS = 300;

/** Stands for the result in the arguments of those who read it. */
const RESULT = { key: 'block' };

const { mib, rounds } = new Command('npm run bench -- thread-results')
  .description('A large result between the threads of one worker.')
  .option('--mib <number>', 'size of the result', '256')
  .option('--rounds <number>', 'the median counts; one more comes first', '5')
  .parse()
  .opts<{ readonly mib: string; readonly rounds: string }>();
const nbytes = Number(mib) * MIB;
const executor = new ThreadExecutor({
  clock: new SystemClock(),
  threadCount: READERS,
  killGraceMs: 5000,
});

async function run(
  task: TaskFunction,
  args: readonly unknown[],
  inputs: ReadonlyMap<string, Uint8Array> = new Map(),
): Promise<Uint8Array> {
  const { module, name, version } = task;
  const packed = packArguments(args, (value) => (value === RESULT ? RESULT.key : undefined));
  const runSpec = { module, name, version, args: packed.bytes };
  const signal = new AbortController().signal;
  const result = await executor.run({ key: name, runSpec, inputs }, signal);
  if (result.kind !== 'success') throw new Error(JSON.stringify(result));
  return result.value;
}

/** Time of something, and the most that the process occupied meanwhile. */
async function measured<T>(work: () => Promise<T>): Promise<[value: T, ms: number, sizes: number]> {
  executor.collectGarbage();
  collectGarbage();
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  collectGarbage();
  const before = residentBytes(process.pid);
  resetPeak(process.pid);
  const startMs = performance.now();
  const value = await work();
  const ms = performance.now() - startMs;
  return [value, ms, (peakBytes(process.pid) - before) / nbytes];
}

async function measure(): Promise<Result> {
  const [value, makeMs, makeSizes] = await measured(() => run(block, [7, nbytes]));
  const inputs = new Map([[RESULT.key, value]]);
  const [, readMs, readSizes] = await measured(() =>
    Promise.all(Array.from({ length: READERS }, () => run(lengthOf, [RESULT], inputs))),
  );
  return {
    bench: 'thread-results',
    mib: Number(mib),
    makeMs: round(makeMs),
    makeSizes: round(makeSizes),
    readers: READERS,
    readMs: round(readMs),
    readSizes: round(readSizes),
  };
}

const results: Result[] = [];
for (let turn = 0; turn <= Number(rounds); turn++) {
  const result = await measure();
  if (turn > 0) results.push(result);
}
print(median(results, 'makeMs'));
await executor.close();
