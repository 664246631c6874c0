/**
 * One large result from a worker process to another one, and to a client: `npm run bench -- large`.
 * Prints for each process how much it occupied at most beyond what it did before, and fails when one of them held
 * the result twice, or the scheduler held it at all.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { Client, LocalCluster } from '../../adapters/app/index.ts';
import { block, processId } from './data-tasks.ts';
import { peakBytes, resetPeak, residentBytes } from './resident.ts';

const MIB = 1024 * 1024;
/** What may come on top of the result: parts under way, and garbage of them. */
const SLACK_MIB = 128;

interface Options {
  readonly mib: string;
  readonly through: boolean;
  readonly fetchFrom?: string;
}

const options = new Command('npm run bench -- large')
  .description('Memory and time that the transfer of one large result takes.')
  .option('--mib <number>', 'size of the result', '1024')
  .option('--through', 'the client fetches it through the scheduler', false)
  .option('--fetch-from <address>', 'be the client')
  .parse()
  .opts<Options>();
const nbytes = Number(options.mib) * MIB;

/** The most memory that a process occupied during a step, beyond what it occupied before. */
class Watch {
  private readonly before: ReadonlyMap<string, number>;

  constructor(private readonly pids: ReadonlyMap<string, number>) {
    this.before = new Map(
      Array.from(pids, ([name, pid]) => {
        resetPeak(pid);
        return [name, residentBytes(pid)];
      }),
    );
  }

  peaksMib(): Record<string, number> {
    const peaks: Record<string, number> = {};
    for (const [name, pid] of this.pids) {
      peaks[name] = Math.round((peakBytes(pid) - (this.before.get(name) ?? 0)) / MIB);
    }
    return peaks;
  }
}

if (options.fetchFrom === undefined) await measure();
else await fetchAsClient(options.fetchFrom);

async function measure(): Promise<void> {
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 2, threads: 1 });
  try {
    const client = await cluster.client();
    const made = client.with({ workers: ['worker-0'], key: 'large' }).submit(block, 7, nbytes);
    await made.settled();
    const pidOf = (worker: string): Promise<number> =>
      client
        .with({ workers: [worker], pure: false })
        .submit(processId)
        .result();
    const watch = new Watch(
      new Map([
        ['scheduler', process.pid],
        ['sender', await pidOf('worker-0')],
        ['receiver', await pidOf('worker-1')],
      ]),
    );
    const startMs = performance.now();
    const copies = await client.replicate(made, { n: 2 });
    if (copies.get('large') !== 2) throw new Error('the copy was not made');
    tell('worker-to-worker', startMs, watch, { sender: 0, receiver: 1, scheduler: 0 });
    await letClientFetch(cluster.address);
  } finally {
    await cluster.close();
  }
}

/** In a separate process, whose memory is distinguished from the scheduler's. */
async function letClientFetch(address: string): Promise<void> {
  const args = ['--mib', options.mib, '--fetch-from', address];
  if (options.through) args.push('--through');
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) process.exitCode = 1;
}

async function fetchAsClient(address: string): Promise<void> {
  await using client = await Client.connect(address);
  const made = client.with({ key: 'large' }).submit(block, 7, nbytes);
  await made.settled();
  const watch = new Watch(new Map([['client', process.pid]]));
  const startMs = performance.now();
  const [value] = await client.gather([made], { direct: !options.through });
  if (value.length !== nbytes || value[nbytes - 1] !== 7) throw new Error('it is not what it was');
  tell(options.through ? 'client-through-scheduler' : 'client', startMs, watch, { client: 1 });
}

/** @param held - how often each process may hold the result in addition */
function tell(
  what: string,
  startMs: number,
  watch: Watch,
  held: Readonly<Record<string, number>>,
): void {
  const seconds = (performance.now() - startMs) / 1000;
  const peaksMib = watch.peaksMib();
  const mib = Number(options.mib);
  const mibPerS = Math.round(mib / seconds);
  process.stdout.write(`${JSON.stringify({ bench: 'large', what, mib, mibPerS, peaksMib })}\n`);
  for (const [name, times] of Object.entries(held)) {
    const allowedMib = times * mib + SLACK_MIB;
    if ((peaksMib[name] ?? 0) <= allowedMib) continue;
    process.stderr.write(`the ${name} took ${peaksMib[name]} MiB, more than ${allowedMib}\n`);
    process.exitCode = 1;
  }
}
