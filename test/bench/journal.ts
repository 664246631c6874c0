/**
 * What a journal and a recording cost, and what a journal is good for:
 * `npm run bench -- journal price|recording|checkpoint|submissions|restart|kills [N]`. Prints one JSON line.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Client, LocalCluster } from '../../adapters/app/index.ts';
import { replayRecording } from '../../adapters/app/past.ts';
import { openScheduler } from '../../adapters/app/start-scheduler.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { SessionSecret } from '../../core/scheduler-host/membership.ts';
import { type Run, Runs } from '../kit/runs.ts';
import { increment, note } from './no-op.ts';
import { round } from './side-by-side.ts';

/** Compilers need a while before they have seen a submission often enough. */
const WARM_UP_MS = 3000;
const SILENT = { debug: skip, info: skip, warn: skip, error: skip };

interface Options extends Readonly<Record<'seed' | 'durability' | 'pairs', string>> {
  readonly plain?: boolean;
}

const program = new Command('npm run bench -- journal')
  .argument('<what>', 'price, recording, checkpoint, submissions, restart or kills')
  .argument('[number]', 'tasks; with submissions milliseconds; with kills kills')
  .option('--seed <number>', 'of the moments of the kills', '7')
  .option('--durability <how>', 'as of `yardmaster scheduler`', 'commit')
  .option('--plain', 'with submissions: without encryption')
  .option('--pairs <number>', 'with price and recording: runs of each', '5')
  .parse();
const [what = '', number] = program.args;
const { seed, durability, pairs, plain = false } = program.opts<Options>();
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-bench-journal-'));
const runs = new Runs();
const MEASUREMENTS: Readonly<Record<string, () => Promise<object>>> = {
  price: () => price((file) => ({ journal: file })),
  recording: () => price((file) => ({ record: `${file}.ylog` })),
  checkpoint: () => checkpoint(Number(number ?? 100_000)),
  submissions: () => submissions(Number(number ?? 5000)),
  restart: () => restart(Number(number ?? 100_000)),
  kills: () => kills(Number(number ?? 20)),
};
try {
  const measure = MEASUREMENTS[what] ?? program.error(`there is no measurement "${what}"`);
  process.stdout.write(`${JSON.stringify({ what, ...(await measure()) })}\n`);
} finally {
  await runs.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

/** What the process of the scheduler and the client spends on the tasks of one cluster. */
interface Cost {
  readonly tasksPerS: number;
  readonly cpuUsPerTask: number;
}

type Written = Partial<Record<'journal' | 'record', string>>;

/**
 * Tasks that do nothing, with two processes of workers, in turn without and with what is measured. Beside the rate
 * it counts CPU of the process of scheduler and client, which other processes of the machine disturb less.
 */
async function price(written: (file: string) => Written): Promise<object> {
  const count = Number(number ?? 50_000);
  const costs: { readonly without: Cost[]; readonly with: Cost[] } = { without: [], with: [] };
  for (let pair = 0; pair < Number(pairs); pair++) {
    costs.without.push(await costOf(count, {}));
    costs.with.push(await costOf(count, written(join(folder, `price-${pair}`))));
  }
  const rates = costs.with.map(
    ({ tasksPerS }, index) => 1 - tasksPerS / (costs.without[index] as Cost).tasksPerS,
  );
  const cpu = costs.with.map(
    ({ cpuUsPerTask }, index) => cpuUsPerTask / (costs.without[index] as Cost).cpuUsPerTask - 1,
  );
  const found = { fewerTasksPerS: round(middle(rates)), moreCpu: round(middle(cpu)) };
  return { count, pairs: costs.with.length, ...found, ...costs };
}

async function costOf(count: number, written: Written): Promise<Cost> {
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, ...written });
  try {
    const client = await cluster.client();
    let next = 0;
    const round = async (tasks: number): Promise<Cost> => {
      const startMs = performance.now();
      const startCpu = process.cpuUsage();
      const values = Array.from({ length: tasks }, () => next++);
      await client.gather(client.map(increment, values));
      const { user, system } = process.cpuUsage(startCpu);
      return {
        tasksPerS: Math.round((1000 * tasks) / (performance.now() - startMs)),
        cpuUsPerTask: Math.round((100 * (user + system)) / tasks) / 100,
      };
    };
    await round(20_000);
    const rounds = [await round(count), await round(count), await round(count)];
    return {
      tasksPerS: middle(rounds.map(({ tasksPerS }) => tasksPerS)),
      cpuUsPerTask: middle(rounds.map(({ cpuUsPerTask }) => cpuUsPerTask)),
    };
  } finally {
    await cluster.close();
  }
}

/** Each client submits one task after the other, each when the one before is committed. */
async function submissions(durationMs: number): Promise<object> {
  const clients = 64;
  const address = await startScheduler(join(folder, 'submissions'), '0', plain).firstLine();
  const all = await Promise.all(Array.from({ length: clients }, () => Client.connect(address)));
  let count = 0;
  const submitFor = async (timeMs: number): Promise<number> => {
    const startMs = performance.now();
    count = 0;
    const one = async (client: Client): Promise<void> => {
      while (performance.now() < startMs + timeMs) {
        client.submit(increment, next++);
        await client.committed();
        count++;
      }
    };
    await Promise.all(all.map(one));
    return Math.round((1000 * count) / (performance.now() - startMs));
  };
  let next = 0;
  await submitFor(WARM_UP_MS);
  const committedPerS = await submitFor(durationMs);
  await Promise.all(all.map((client) => client.close()));
  return { clients, durability, isEncrypted: !plain, committedPerS };
}

/** Gives a scheduler so many tasks that do not finish, in graphs of a thousand, and a thousand workers. */
async function fill(scheduler: Scheduler, count: number): Promise<void> {
  const secretHash = new SessionSecret('of the client of the measurement').toString();
  scheduler.enqueue({ op: 'register-client', client: 'alice', secretHash });
  for (let index = 0; index < 1000; index++) scheduler.enqueue(worker(index));
  for (let from = 0; from < count; from += 1000) {
    const keys = Array.from({ length: 1000 }, (_, index) => `task-${from + index}`);
    const tasks = keys.map((key, index) => ({
      key,
      dependencies: index % 10 === 0 ? [] : [keys[index - 1] as string],
      runSpec: { module: 'file:///tasks.js', name: 'work', version: 'x', args: new Uint8Array(50) },
    }));
    scheduler.enqueue({ op: 'update-graph', client: 'alice', tasks, keys });
  }
  while (scheduler.kernel.isUnsettled) await pause(1);
}

/** A scheduler with so many tasks writes its state, which a recording that begins then begins with; and it is restored. */
async function checkpoint(count: number): Promise<object> {
  const { scheduler, record, stopRecording, close } = await openScheduler({ log: SILENT });
  await fill(scheduler, count);
  const writtenMs: number[] = [];
  const restoredMs: number[] = [];
  let bytes = 0;
  for (let time = 0; time < 5; time++) {
    const file = join(folder, `checkpoint-${time}.ylog`);
    const beginMs = performance.now();
    await record(file);
    writtenMs.push(Math.round(performance.now() - beginMs));
    bytes = (await stopRecording()).bytes;
    const startMs = performance.now();
    const { difference } = await replayRecording(file);
    restoredMs.push(Math.round(performance.now() - startMs));
    if (difference !== undefined) process.exitCode = 1;
  }
  const tasks = scheduler.kernel.cluster.tasks.size;
  await close();
  return {
    tasks,
    workers: 1000,
    bytes,
    writtenMs: middle(writtenMs),
    restoredMs: middle(restoredMs),
  };
}

/** A scheduler with so many tasks starts again. */
async function restart(count: number): Promise<object> {
  const journal = join(folder, 'restart');
  const first = await openScheduler({ journal, log: SILENT });
  await fill(first.scheduler, count);
  await first.close();
  const timesMs: number[] = [];
  let tasks = 0;
  for (let time = 0; time < 3; time++) {
    const startMs = performance.now();
    const again = await openScheduler({ journal, log: SILENT });
    timesMs.push(Math.round(performance.now() - startMs));
    tasks = again.scheduler.kernel.cluster.tasks.size;
    await again.close();
  }
  return { tasks, workers: 1000, readyMs: middle(timesMs), timesMs };
}

function worker(
  index: number,
): Parameters<Awaited<ReturnType<typeof openScheduler>>['scheduler']['enqueue']>[0] {
  const address = `tcp://10.0.${index >> 8}.${index & 255}:4000`;
  return {
    op: 'register-worker',
    identity: {
      address,
      serverId: address,
      name: address,
      host: address,
      threadCount: 1,
      memoryLimitBytes: 0,
      resources: {},
    },
    status: 'paused',
  };
}

/** The scheduler is killed at moments that the seed decides; every task is to run once. */
async function kills(times: number): Promise<object> {
  const journal = join(folder, 'kills');
  let scheduler = startScheduler(journal, '0');
  const address = await scheduler.firstLine();
  const { port } = new URL(address);
  const config = join(folder, 'worker.yaml');
  writeFileSync(config, 'worker: { onSchedulerLost: reconnect, threads: 2 }');
  const args = ['worker', address, '--config', config, '--log-level', 'error'];
  await Promise.all([0, 1].map(() => runs.yardmaster(...args).firstLine()));
  const client = await Client.connect(address, { onSchedulerLost: 'reconnect' });
  const file = join(folder, 'notes.txt');
  const leaves = 100 * times;
  const futures = Array.from({ length: leaves }, (_, index) =>
    client.submit(note, file, 25, index),
  );
  await client.committed();
  const random = randomFrom(Number(seed));
  const moments = Array.from({ length: times }, () => random() * 0.95 * leaves).sort(
    (a, b) => a - b,
  );
  const startMs = performance.now();
  for (const moment of moments) {
    while (linesOf(file).length < moment) await pause(5);
    scheduler.child.kill('SIGKILL');
    await scheduler.exit;
    scheduler = startScheduler(journal, port);
    await scheduler.firstLine();
  }
  const values = await client.gather(futures);
  const seconds = Math.round((performance.now() - startMs) / 1000);
  await client.close();
  const lines = linesOf(file);
  const isRight = values.every((value, index) => value === index);
  const computedAgain = lines.length - new Set(lines).size;
  if (!isRight || computedAgain > 0) process.exitCode = 1;
  return { kills: times, seed: Number(seed), tasks: leaves, isRight, computedAgain, seconds };
}

function startScheduler(journal: string, port: string, isPlain = false): Run {
  const plainly = isPlain ? ['--insecure'] : [];
  const args = ['--journal', journal, '--durability', durability, ...plainly];
  return runs.yardmaster(
    'scheduler',
    '--port',
    port,
    '--no-dashboard',
    '--log-level',
    'error',
    ...args,
  );
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

function skip(): void {
  return;
}
