/**
 * One pool under one load in a separate process: `node pool-rounds.js POOL LOAD TASKS THREADS ROUNDS`.
 * Prints a JSON line. What another load compiles and leaves on the heap would count otherwise.
 */
import { loadavg } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { type Pool, type PoolName, POOLS } from './pools.ts';
import { median, print, type Result, round } from './side-by-side.ts';

/** Tasks that run first: compilers and modules are warm after them. */
const WARM_UP_TASKS = 20_000;
/** Calls that wait for their result at any time, with the load `closed`. */
const IN_FLIGHT = 64;

const CLOSE_TIMEOUT_MS = 2000;

/** Items of a round of the load `items`, for each task of the others. */
const ITEMS_PER_TASK = 10;

const LOADS = { burst, closed: closedLoop, items } as const;

const [name, load, tasks, threads, rounds] = process.argv.slice(2) as [
  PoolName,
  keyof typeof LOADS,
  string,
  string,
  string,
];
const run = LOADS[load];
const pool: Pool = await POOLS[name](Number(threads));
try {
  await run(valuesFrom(0, WARM_UP_TASKS));
  const count = Number(tasks) * (load === 'items' ? ITEMS_PER_TASK : 1);
  const measured: Result[] = [];
  for (let turn = 0; turn < Number(rounds); turn++) {
    measured.push(await measure(valuesFrom(WARM_UP_TASKS + turn * count, count)));
  }
  print({ pool: name, ...median(measured, 'usPerTask'), load: round(loadavg()[0] ?? 0) });
} finally {
  // Not every pool comes to the end of closing.
  await Promise.race([pool.close(), setTimeout(CLOSE_TIMEOUT_MS)]);
}
process.exit(0);

async function measure(values: readonly number[]): Promise<Result> {
  const startCpu = process.cpuUsage();
  const startMs = performance.now();
  await run(values);
  const seconds = (performance.now() - startMs) / 1000;
  const { user, system } = process.cpuUsage(startCpu);
  return {
    tasksPerS: Math.round(values.length / seconds),
    usPerTask: round((user + system) / values.length),
  };
}

/** All calls at once. */
async function burst(values: readonly number[]): Promise<void> {
  check(values, await pool.all(values));
}

/** Many items of one function. */
async function items(values: readonly number[]): Promise<void> {
  check(values, await (pool.chunked ?? pool.all)(values));
}

/** A new call when an old one has its result. */
async function closedLoop(values: readonly number[]): Promise<void> {
  const results: number[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < values.length) {
      const index = next++;
      results[index] = await pool.one(values[index] as number);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  check(values, results);
}

function check(values: readonly number[], results: readonly number[]): void {
  const wrong = values.findIndex((value, index) => results[index] !== value + 1);
  if (wrong >= 0) throw new Error(`the result of ${values[wrong]} is ${String(results[wrong])}`);
}

function valuesFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
