/**
 * More data than workers have memory for: `npm run bench -- over-limit`. Two worker processes make blocks, all of
 * which are kept, and add them up in pairs, one of which has often to be fetched. Prints the peak of each
 * process, and fails when the result is wrong, a worker died, or one of them reached its `terminate` threshold.
 */
import { Command } from 'commander';
import { type Future, LocalCluster } from '../../adapters/app/index.ts';
import type { Logger } from '../../core/api/index.ts';
import { addUpBoth, block, processId, total } from './data-tasks.ts';
import { peakBytes } from './resident.ts';
import { print, round } from './side-by-side.ts';

const MB = 1_000_000;
const TERMINATE = 0.95;

interface Options {
  readonly limitMb: string;
  readonly times: string;
  readonly blockMb: string;
  readonly threads: string;
  readonly verbose: boolean;
}

const options = new Command('npm run bench -- over-limit')
  .description('A graph whose data is several times the memory limit.')
  .option('--limit-mb <number>', 'memory limit of each worker', '256')
  .option('--times <number>', 'data, in limits of one worker', '4')
  .option('--block-mb <number>', 'size of each result', '8')
  .option('--threads <number>', 'tasks at once per worker', '1')
  .option('--verbose', 'what workers log', false)
  .parse()
  .opts<Options>();
const limitBytes = Number(options.limitMb) * MB;
const nbytes = Number(options.blockMb) * MB;
const count = Math.ceil((Number(options.times) * limitBytes) / nbytes / 2) * 2;

const nothing = (): void => undefined;
const tell = (_: object, text?: string): void => void process.stderr.write(`${text ?? ''}\n`);
const log: Logger = {
  debug: nothing,
  info: nothing,
  warn: options.verbose ? tell : nothing,
  error: tell,
};

const cluster = await LocalCluster.start({
  mode: 'processes',
  workers: 2,
  threads: Number(options.threads),
  config: { worker: { memoryLimit: limitBytes } },
  log,
});
const startMs = performance.now();
try {
  const client = await cluster.client();
  const pidsOf = async (): Promise<number[]> =>
    Promise.all(
      ['worker-0', 'worker-1'].map((name) =>
        client
          .with({ workers: [name], pure: false })
          .submit(processId)
          .result(),
      ),
    );
  const pids = await pidsOf();
  const idleMb = pids.map((pid) => Math.round(peakBytes(pid) / MB));
  const seeds = Array.from({ length: count }, (_, index) => index);
  const blocks = client.map(
    block,
    seeds,
    seeds.map(() => nbytes),
  );
  await Promise.all(blocks.map((future) => future.settled()));
  const madeS = (performance.now() - startMs) / 1000;
  const half = count / 2;
  const sums = seeds.map((seed) => {
    const other = blocks[(seed + half + 1) % count];
    return client.submit(
      addUpBoth,
      blocks[seed] as Future<Uint8Array>,
      other as Future<Uint8Array>,
    );
  });
  const sum = await client.submit(total, ...sums).result();
  const expected = seeds.reduce((so, seed) => so + 2 * (seed % 251) * nbytes, 0);
  const peaksMb = pids.map((pid) => Math.round(peakBytes(pid) / MB));
  const workers = [...cluster.scheduler.cluster.workers.values()];
  print({
    bench: 'over-limit',
    limitMb: Number(options.limitMb),
    dataMb: Math.round((count * nbytes) / MB),
    blockMb: Number(options.blockMb),
    threads: Number(options.threads),
    madeS: round(madeS),
    seconds: round((performance.now() - startMs) / 1000),
    idleMb,
    peaksMb,
    peakOfLimit: round(Math.max(...peaksMb) / Number(options.limitMb)),
    spilledMb: workers.map(({ metrics }) => Math.round(metrics.spilledMemoryBytes / MB)),
  });
  check(sum === expected, `the result is ${sum} instead of ${expected}`);
  const after = await pidsOf();
  check(after.join() === pids.join(), 'a worker died');
  const isBelow = Math.max(...peaksMb) * MB < TERMINATE * limitBytes;
  check(isBelow, `a worker reached its threshold of ${TERMINATE}`);
} finally {
  await cluster.close();
}

function check(holds: boolean, complaint: string): void {
  if (holds) return;
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 1;
}
