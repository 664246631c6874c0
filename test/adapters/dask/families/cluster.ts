/** Plays the cases with two of Dask's workers, under Dask's own scheduler and under ours. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run } from '../../../kit/runs.ts';
import { DaskRuns } from '../dask-runs.ts';
import type { Outcome } from './compare.ts';

export const SCHEDULERS = ['stock', 'ours'] as const;
export type SchedulerName = (typeof SCHEDULERS)[number];

/** Scripts are not compiled: they stay in the folder that `dist` was made from. */
const SCRIPT = fileURLToPath(
  new URL('../../../../../test/adapters/dask/families/families.py', import.meta.url),
);

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

const WORKERS = [
  ['--name', 'alice', '--resources', 'GPU=2'],
  ['--name', 'bob'],
];

/** What became of the cases of one run. */
export interface Played {
  readonly outcomes: readonly Outcome[];
  /** The exit code of the script; 0: it came to its end. */
  readonly code: number | null;
  /** What the script and the scheduler wrote to stderr. */
  readonly complaints: string;
}

/**
 * Plays the cases once.
 *
 * @param args - further arguments of `families.py`
 * @param onOutput - is called with what the script prints, as it comes
 * @param python - of the client, the workers, and the stock scheduler or the helper of ours
 */
export async function play(
  scheduler: SchedulerName,
  python: string,
  args: readonly string[],
  onOutput: (text: string) => void,
): Promise<Played> {
  const scratch = await mkdtemp(join(tmpdir(), 'families-'));
  const runs = new DaskRuns(python, {
    DASK_TEMPORARY_DIRECTORY: scratch,
    TMPDIR: scratch,
    PYTHONWARNINGS: 'ignore',
    PYTHONUNBUFFERED: '1',
  });
  const stop = (): void => void runs.end('SIGKILL').finally(() => process.exit(1));
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    const { run, address } = await startScheduler(runs, scheduler);
    for (const flags of WORKERS) {
      runs.worker(address, ['--nthreads', '2', '--memory-limit', '2GiB', ...flags]);
    }
    const script = runs.script(SCRIPT, address, ...args);
    script.child.stdout?.on('data', onOutput);
    const code = await script.exit;
    const complaints = `${script.stderr.slice(-4000)}\n${run.stderr.slice(-4000)}`;
    return { outcomes: read(script.stdout), code, complaints };
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
    await runs.end();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function startScheduler(
  runs: DaskRuns,
  scheduler: SchedulerName,
): Promise<{ readonly run: Run; readonly address: string }> {
  if (scheduler === 'ours') {
    const { run, dask } = await runs.scheduler();
    return { run, address: dask };
  }
  const where = ['--host', '127.0.0.1', '--port', '0', '--no-dashboard'];
  const run = runs.script('-m', 'distributed.cli.dask_scheduler', ...where);
  return { run, address: (await run.addresses(1))[0]! };
}

function read(stdout: string): Outcome[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Outcome);
}
