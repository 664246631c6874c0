/**
 * What users of an application notice: tasks that wait for tasks, waits for the network, and the first result. Prints
 * medians of `--rounds` rounds (5).
 */
import { execFileSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import { all, type Client, type Future } from '../../adapters/client/index.ts';
import { fetchPage, leaf, parent, parentOfFetch } from './wait-tasks.ts';
import type { FirstResult } from './first-result.ts';

interface Round {
  readonly wallMs: number;
  readonly cpuMs: number;
}

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const rounds = Number(values.rounds);

await compare(
  '50 tasks that await tasks of 20 ms, 2 threads (500 ms of waits)',
  2,
  (client, indices) => client.map(parent, indices(50)),
);
await compare('the same with concurrent(50) tasks of 20 ms', 2, (client, indices) =>
  client.map(parentOfFetch, indices(50)),
);
await compare('200 waits of 100 ms, concurrent(50), 4 threads', 4, (client, indices) =>
  client.map(fetchPage, indices(200), all(100)),
);
compareStart();

async function compare(
  what: string,
  threads: number,
  submit: (client: Client, indices: (count: number) => number[]) => Future<number>[],
): Promise<void> {
  await using cluster = await LocalCluster.start({ workers: 1, threads });
  const client = await cluster.client();
  // Modules are loaded in every thread before anything is measured.
  await client.gather(client.map(leaf, [...Array(4 * threads).keys()]));
  const taken: Round[] = [];
  for (let round = 1; round <= rounds; round++) {
    const indices = (count: number): number[] => {
      return Array.from({ length: count }, (_, index) => 10_000 * round + index);
    };
    taken.push(await measured(() => client.gather(submit(client, indices))));
  }
  report(what, taken);
}

/** Each round in a process of its own, the kinds in turn, so that none has the quieter machine. */
function compareStart(): void {
  const taken = new Map<string, FirstResult[]>();
  for (let round = 0; round < rounds; round++) {
    for (const mode of ['threads', 'processes', 'piscina']) {
      const program = fileURLToPath(new URL('first-result.js', import.meta.url));
      const printed = execFileSync(process.execPath, [program, mode], { encoding: 'utf8' });
      const results = taken.get(mode) ?? [];
      taken.set(mode, [...results, JSON.parse(printed) as FirstResult]);
    }
  }
  for (const [mode, results] of taken) {
    const startCpuMs = Math.round(median(results.map((result) => result.startCpuMs)));
    report(`first result with two workers, ${mode}`, results, `; their start: ${startCpuMs} ms`);
  }
}

async function measured(work: () => Promise<unknown>): Promise<Round> {
  const startMs = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wallMs: performance.now() - startMs, cpuMs: (user + system) / 1000 };
}

function report(what: string, taken: readonly Round[], more = ''): void {
  const wallMs = Math.round(median(taken.map((round) => round.wallMs)));
  const cpuMs = Math.round(median(taken.map((round) => round.cpuMs)));
  process.stdout.write(`${what}: ${wallMs} ms, ${cpuMs} ms of CPU in this process${more}\n`);
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
