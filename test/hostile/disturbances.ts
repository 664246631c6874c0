import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import type { Client } from '../../adapters/client/index.ts';
import { RESTART_RULES } from '../../adapters/nanny/index.ts';
import type * as Tasks from '../adapters/cli/fixtures/tasks.js';
import { ROOT } from './names-in-sources.ts';
import { Random } from './schema-values.ts';

// Worker processes load it, which read no TypeScript.
const path = pathToFileURL(join(ROOT, 'test/adapters/cli/fixtures/tasks.js')).href;
const { add, slowSquare } = (await import(path)) as typeof Tasks;

const WORKERS = 4;
const TASKS_OF_ROUND = 40;
/** The kernel forgives the silence of ten heartbeats, which is five seconds with few workers. */
export const TTL_MS = 5000;
const DATA = Array.from({ length: 8 }, (_, index) => [index, 2 * index]);

/** What happened to a cluster that was disturbed while it computed. */
export interface Outcome {
  /** Workers killed, workers stopped, stalls of the scheduler. */
  disturbances: number;
  rounds: number;
  removedWorkers: number;
}

/** How often each thing is done to a cluster. */
export interface Disturbances {
  /** SIGKILL of a worker's process. */
  readonly kills: number;
  /** SIGSTOP of a worker's process, for half the time to live up to one and a half of it. */
  readonly stops: number;
  /** The scheduler's process stands still for so many times to live, once. */
  readonly stallTtls: number;
}

const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/**
 * Computes on worker processes while these are killed and stopped at random.
 * @throws Error when a result is wrong, a task failed, or scattered data is lost
 */
export async function disturb(
  { kills, stops, stallTtls }: Disturbances,
  seed: number,
  onProgress: (text: string) => void = ignore,
): Promise<Outcome> {
  const random = new Random(seed);
  const cluster = await LocalCluster.start({
    mode: 'processes',
    workers: WORKERS,
    threads: 1,
    log,
    config: {
      scheduler: {
        workerTtl: '1s',
        // Each task may be hit so often by chance that it was not to blame for any of it.
        allowedFailures: 10,
        activeMemoryManager: {
          interval: '500 ms',
          policies: [{ use: 'keep-replicas' }, { use: 'reduce-replicas' }],
        },
      },
      worker: { stuckAfter: 'inf' },
    },
  });
  const outcome: Outcome = { disturbances: 0, rounds: 0, removedWorkers: 0 };
  cluster.scheduler.events.on('worker-removed', () => outcome.removedWorkers++);
  try {
    const client = await cluster.client();
    const held = await client.scatter(DATA, { broadcast: true });
    const isOver = { value: false };
    const lived = new Lifetimes();
    const work = computeUntil(client, isOver, outcome);
    const done = async (what: string): Promise<void> => {
      outcome.disturbances++;
      onProgress(`${what} ${outcome.disturbances}: ${outcome.rounds} rounds right`);
      await Promise.race([work, passed(0)]);
    };
    for (let count = 0; count < kills; count++) {
      await allBack(cluster);
      await passed(random.below(300));
      const pid = random.one(await lived.forLong(cluster));
      const before = outcome.removedWorkers;
      process.kill(pid, 'SIGKILL');
      // Until the scheduler knows, its books name copies that are gone: the next kill could take the last one.
      while (outcome.removedWorkers === before) await passed(5);
      await done('kill');
    }
    for (let count = 0; count < stops; count++) {
      await allBack(cluster);
      const pid = random.one(cluster.pids);
      process.kill(pid, 'SIGSTOP');
      await passed(TTL_MS / 2 + random.below(TTL_MS));
      resume(pid);
      await done('stop');
    }
    await allHeardOf(cluster);
    await allBack(cluster);
    const removed = outcome.removedWorkers;
    if (stallTtls > 0) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallTtls * TTL_MS);
      await passed(2 * TTL_MS); // Checks of the time to live that come after the stall.
      await done('stall');
      if (outcome.removedWorkers > removed) throw new Error('a stall of its own removed a worker');
    }
    isOver.value = true;
    await work;
    const values = await client.gather(held);
    if (JSON.stringify(values) !== JSON.stringify(DATA)) throw new Error('data was lost');
    return outcome;
  } finally {
    await cluster.close();
  }
}

/** Rounds of small tasks and one that adds up their results. */
async function computeUntil(
  client: Client,
  isOver: { readonly value: boolean },
  outcome: Outcome,
): Promise<void> {
  for (let round = 0; !isOver.value; round++) {
    const inputs = Array.from({ length: TASKS_OF_ROUND }, (_, index) => 1000 * round + index);
    const squares = inputs.map((x) => client.submit(slowSquare, 20, x));
    const sum = await client.submit(add, squares).result();
    const expected = inputs.reduce((so, x) => so + x * x, 0);
    if (sum !== expected) throw new Error(`round ${round} gave ${sum} instead of ${expected}`);
    for (const future of squares) future.release();
    outcome.rounds++;
  }
}

/** Since when each worker's process has been seen. */
class Lifetimes {
  readonly #sinceMs = new Map<number, number>();

  /**
   * Waits for processes that their nannies no longer count as started a moment ago: the next start of one that dies early
   * is delayed, twice as long each time, and a hundred kills would take hours.
   */
  async forLong(cluster: LocalCluster): Promise<number[]> {
    for (;;) {
      const nowMs = performance.now();
      for (const pid of cluster.pids) {
        if (!this.#sinceMs.has(pid)) this.#sinceMs.set(pid, nowMs);
      }
      const old = cluster.pids.filter((pid) => {
        return nowMs - (this.#sinceMs.get(pid) ?? nowMs) > 1.1 * RESTART_RULES.stableAfterMs;
      });
      if (old.length > 0) return old;
      await passed(50);
    }
  }
}

async function allBack(cluster: LocalCluster): Promise<void> {
  const { cluster: state } = cluster.scheduler;
  while (state.workers.size < WORKERS || cluster.pids.length < WORKERS) await passed(20);
  // Data that everyone shall have has reached who came last.
  const isEverywhere = (): boolean =>
    [...state.tasks.values()].every((task) => task.replicas <= 1 || task.whoHas.size > 1);
  while (!isEverywhere()) await passed(20);
}

/** Waits for news of each worker: one that was continued a moment ago may have been silent for almost its time to live. */
async function allHeardOf({ scheduler }: LocalCluster): Promise<void> {
  const { workers } = scheduler.cluster;
  const before = new Map(Array.from(workers.values(), (one) => [one.address, one.lastSeenMs]));
  const isSilent = (): boolean =>
    [...workers.values()].some((one) => one.lastSeenMs <= (before.get(one.address) ?? 0));
  while (isSilent()) await passed(20);
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It was replaced meanwhile.
  }
}

function ignore(): undefined {
  return undefined;
}

/** Kills and stops workers so often, stalls for ten times to live, and prints what came of it. */
export async function printDisturbances(count: number): Promise<void> {
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  const outcome = await disturb({ kills: count, stops: count, stallTtls: 10 }, 1, print);
  print(`${JSON.stringify(outcome)}: every result right, no task failed, no data lost`);
}
