/**
 * The price of keys and encryption: `npm run bench -- tls [--tasks N] [--pairs N] [--mebibytes N]`. A scheduler and a worker
 * in processes of their own at tcp://, and two at tls://; rounds alternate, so that both meet the same noise.
 */
import { readFileSync } from 'node:fs';

import { Command } from 'commander';

import { Client } from '../../adapters/app/index.ts';
import { Runs } from '../kit/runs.ts';
import { fill, increment } from './no-op.ts';

const program = new Command('npm run bench -- tls')
  .description('Tasks per second and transfer of a large result, over tcp:// and tls:// in turn.')
  .option('--tasks <number>', 'tasks that do nothing in a round', '20000')
  .option('--pairs <number>', 'rounds of each', '9')
  .option('--mebibytes <number>', 'size of the large result', '64')
  .parse();
const { tasks, pairs, mebibytes } = program.opts<Record<string, string>>();

type Scheme = 'tcp' | 'tls';
const MIB = 1024 * 1024;
/** Linux counts the CPU time of other processes in hundredths of a second. */
const CLOCK_TICK_US = 10_000;
const SCHEMES: readonly Scheme[] = ['tcp', 'tls'];
const runs = new Runs();
let next = 0;

interface Cluster {
  readonly client: Client;
  readonly pids: readonly number[];
}

/** What a round took: milliseconds, and microseconds of CPU of all three processes. */
interface Cost {
  readonly ms: number;
  readonly cpuUs: number;
}

async function start(scheme: Scheme): Promise<Cluster> {
  const flags = ['--port', '0', '--no-dashboard', ...(scheme === 'tcp' ? ['--insecure'] : [])];
  const scheduler = runs.yardmaster('scheduler', ...flags);
  const address = await scheduler.firstLine();
  const worker = runs.yardmaster('worker', address, '--threads', '1', '--no-nanny');
  await worker.firstLine();
  const pids = [scheduler, worker].map(({ child }) => child.pid as number);
  return { client: await Client.connect(address), pids };
}

function cpuUs({ pids }: Cluster): number {
  const { user, system } = process.cpuUsage();
  return pids.reduce((sum, pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [ticks = 0, systemTicks = 0] = stat
      .slice(stat.lastIndexOf(')'))
      .split(' ')
      .slice(12)
      .map(Number);
    return sum + (ticks + systemTicks) * CLOCK_TICK_US;
  }, user + system);
}

async function costOf(cluster: Cluster, run: () => Promise<unknown>): Promise<Cost> {
  const [startMs, startUs] = [performance.now(), cpuUs(cluster)];
  await run();
  return { ms: performance.now() - startMs, cpuUs: cpuUs(cluster) - startUs };
}

/** Tasks that do nothing. */
function mapAll(cluster: Cluster, count: number): Promise<Cost> {
  const values = Array.from({ length: count }, () => next++);
  return costOf(cluster, () => cluster.client.gather(cluster.client.map(increment, values)));
}

/** A large result on its way from the worker to the client. */
async function fetchLarge(cluster: Cluster, size: number): Promise<Cost> {
  const future = cluster.client.submit(fill, size * MIB, next++);
  await future.settled();
  return costOf(cluster, () => future.result());
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

/** Rounds of both in turn, after one that does not count. @param units - in a round */
async function compare(
  what: string,
  units: number,
  measure: (cluster: Cluster) => Promise<Cost>,
  clusters: Readonly<Record<Scheme, Cluster>>,
): Promise<void> {
  const found: Record<Scheme, Cost[]> = { tcp: [], tls: [] };
  for (const scheme of SCHEMES) await measure(clusters[scheme]);
  for (let pair = 0; pair < Number(pairs); pair++) {
    const order = pair % 2 === 0 ? SCHEMES : SCHEMES.toReversed();
    for (const scheme of order) found[scheme].push(await measure(clusters[scheme]));
  }
  const priceOf = (field: keyof Cost): number =>
    Math.round(
      100 * median(found.tls.map((cost, at) => cost[field] / (found.tcp[at] as Cost)[field] - 1)),
    );
  const shown = (scheme: Scheme): object => ({
    perS: Math.round(units / (median(found[scheme].map(({ ms }) => ms)) / 1000)),
    cpuUs: Math.round((10 * median(found[scheme].map((cost) => cost.cpuUs))) / units) / 10,
  });
  const line = {
    ...{ bench: 'tls', what, tcp: shown('tcp'), tls: shown('tls') },
    ...{ timePricePercent: priceOf('ms'), cpuPricePercent: priceOf('cpuUs') },
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

try {
  const clusters = { tcp: await start('tcp'), tls: await start('tls') };
  for (const scheme of SCHEMES) await mapAll(clusters[scheme], 20_000);
  const [count, size] = [Number(tasks), Number(mebibytes)];
  await compare('no-ops', count, (cluster) => mapAll(cluster, count), clusters);
  await compare('MiB', size, (cluster) => fetchLarge(cluster, size), clusters);
  await Promise.all(SCHEMES.map((scheme) => clusters[scheme].client.close()));
} finally {
  await runs.end('SIGKILL');
}
