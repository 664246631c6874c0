/** Pools of threads behind one face: ours with all of its scheduling, and those that people know. */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { FixedThreadPool } from 'poolifier';
import { Tinypool } from 'tinypool';
import { LocalCluster } from '../../adapters/app/index.ts';
import { increment } from './no-op.ts';

/** A pool that adds one to numbers. */
export interface Pool {
  one(value: number): Promise<number>;
  all(values: readonly number[]): Promise<readonly number[]>;
  /** The same in the way that is best for many small calls, where there is another one. */
  chunked?(values: readonly number[]): Promise<readonly number[]>;
  close(): Promise<void>;
}

/** By name: `yardmaster` first. */
export const POOLS = {
  yardmaster,
  piscina: (threads) => piscina(threads, 1),
  /** Several tasks at once on a thread, which tasks that compute gain nothing from. */
  'piscina-10': (threads) => piscina(threads, 10),
  tinypool,
  poolifier,
} as const satisfies Record<string, (threads: number) => Promise<Pool> | Pool>;

export type PoolName = keyof typeof POOLS;

async function yardmaster(threads: number): Promise<Pool> {
  const cluster = await LocalCluster.start({ mode: 'threads', workers: 1, threads });
  const client = await cluster.client();
  return {
    async one(value) {
      const future = client.submit(increment, value);
      try {
        return await future.result();
      } finally {
        future.release();
      }
    },
    async all(values) {
      const futures = client.map(increment, values);
      const results = await client.gather(futures);
      for (const future of futures) future.release();
      return results;
    },
    async chunked(values) {
      const results: number[] = [];
      for await (const each of client.map(increment, values, { chunk: 'auto' })) results.push(each);
      return results;
    },
    close: () => cluster.close(),
  };
}

function piscina(threads: number, concurrentTasksPerWorker: number): Pool {
  const pool = new Piscina<number, number>({
    filename: compiled('add-one.js'),
    name: 'addOne',
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker,
  });
  return oneByOne(
    (value) => pool.run(value),
    () => pool.destroy(),
  );
}

function tinypool(threads: number): Pool {
  const pool = new Tinypool({
    filename: compiled('add-one.js'),
    name: 'addOne',
    minThreads: threads,
    maxThreads: threads,
  });
  return oneByOne(
    (value) => pool.run(value) as Promise<number>,
    () => pool.destroy(),
  );
}

function poolifier(threads: number): Pool {
  const pool = new FixedThreadPool<number, number>(threads, compiled('pool-thread.js'));
  return oneByOne(
    (value) => pool.execute(value),
    () => pool.destroy(),
  );
}

function oneByOne(one: Pool['one'], close: Pool['close']): Pool {
  return { one, all: (values) => Promise.all(values.map((value) => one(value))), close };
}

/** Threads load compiled files. */
function compiled(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
