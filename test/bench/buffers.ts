/**
 * What a large buffer costs between threads: `npm run bench -- buffers`. A task makes it and two others read it, from
 * ordinary and from shared memory; beside it piscina, which moves it to one reader. Each kind runs in a separate process.
 * Prints wall and CPU time, and how much the process occupied at most beyond what it did before, in sizes of the buffer;
 * `passing` is the most after a number of buffers that were made, read and released one after the other.
 */
import { Command, Option } from 'commander';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { LocalCluster } from '../../adapters/app/index.ts';
import { collectGarbage } from '../../adapters/executors/collect-garbage.ts';
import { make, makeShared, read } from './buffer-tasks.ts';
import { peakBytes, resetPeak, residentBytes } from './resident.ts';
import { median, print, type Result, round, run } from './side-by-side.ts';

const MB = 1_000_000;
const READERS = 2;
const SETTLE_MS = 300;

/** Makes a buffer of some bytes, has it read, and forgets it. */
interface Subject {
  pass(nbytes: number): Promise<void>;
  close(): Promise<void>;
}

const SUBJECTS = {
  ordinary: () => ours(make),
  shared: () => ours(makeShared),
  'piscina-move': piscina,
} as const satisfies Record<string, () => Promise<Subject> | Subject>;

type Kind = keyof typeof SUBJECTS;
const KINDS = Object.keys(SUBJECTS) as Kind[];

interface Options {
  readonly mb: string;
  readonly rounds: string;
  readonly passing: string;
  readonly only?: Kind;
}

const options = new Command('npm run bench -- buffers')
  .description('A large buffer between threads, beside piscina.')
  .option('--mb <number>', 'size of the buffer', '200')
  .option('--rounds <number>', 'the median counts; one more comes first', '5')
  .option('--passing <number>', 'buffers of a quarter of the size, one after the other', '40')
  .addOption(new Option('--only <kind>', 'one kind, in this process').choices(KINDS))
  .parse()
  .opts<Options>();

if (options.only === undefined) {
  const { mb, rounds, passing } = options;
  for (const kind of KINDS) {
    const given = ['--mb', mb, '--rounds', rounds, '--passing', passing, '--only', kind];
    print(run(process.execPath, [fileURLToPath(import.meta.url), ...given]));
  }
} else print(await measure(options.only, options));

async function ours(maker: typeof make): Promise<Subject> {
  const cluster = await LocalCluster.start({ mode: 'threads', workers: 1, threads: READERS });
  const client = (await cluster.client()).with({ pure: false });
  return {
    async pass(nbytes) {
      const made = client.submit(maker, nbytes);
      const sums = Array.from({ length: READERS }, (_, reader) =>
        client.submit(read, made, reader),
      );
      for (const [reader, sum] of sums.entries()) check(await sum.result(), nbytes, reader);
      for (const future of [made, ...sums]) future.release();
    },
    close: () => cluster.close(),
  };
}

function piscina(): Subject {
  const filename = fileURLToPath(new URL('./buffer-tasks.js', import.meta.url));
  const pool = new Piscina({ filename, minThreads: READERS, maxThreads: READERS });
  return {
    async pass(nbytes) {
      const made = (await pool.run(nbytes, {
        name: 'makeMovedNumbers',
      })) as Float64Array<ArrayBuffer>;
      const transferList = [made.buffer];
      check((await pool.run(made, { name: 'readNumbers', transferList })) as number, nbytes, 0);
    },
    close: () => pool.close(),
  };
}

function check(sum: number, nbytes: number, reader: number): void {
  if (sum !== nbytes / 8 + reader) throw new Error(`the reader ${reader} added up to ${sum}`);
}

async function measure(kind: Kind, { mb, rounds, passing }: Options): Promise<Result> {
  const nbytes = Number(mb) * MB;
  const subject = await SUBJECTS[kind]();
  const results: Result[] = [];
  for (let turn = 0; turn <= Number(rounds); turn++) {
    const result = await measured(() => subject.pass(nbytes), nbytes);
    if (turn > 0) results.push(result);
  }
  const many = await measured(async () => {
    for (let turn = 0; turn < Number(passing); turn++) await subject.pass(nbytes / 4);
  }, nbytes);
  await subject.close();
  const middle = median(results, 'ms');
  return { bench: 'buffers', kind, mb: Number(mb), ...middle, passing: many };
}

async function measured(work: () => Promise<void>, nbytes: number): Promise<Result> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  collectGarbage();
  const before = residentBytes(process.pid);
  resetPeak(process.pid);
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  await work();
  const ms = performance.now() - startMs;
  const { user, system } = process.cpuUsage(startCpu);
  const sizes = (peakBytes(process.pid) - before) / nbytes;
  return { ms: round(ms), cpuMs: round((user + system) / 1000), sizes: round(sizes) };
}
