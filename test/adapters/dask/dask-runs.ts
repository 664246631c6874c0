/** Our scheduler for Dask, Dask's workers, and scripts that play against a scheduler. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { type Run, Runs } from '../../kit/runs.ts';
import { DaskBench } from './peers.ts';

/** The processes of a cluster in which Dask speaks. */
export class DaskRuns extends Runs {
  /** @param python - reads graphs, and runs the workers */
  constructor(
    private readonly python: string,
    env?: NodeJS.ProcessEnv,
  ) {
    super(env);
  }

  /** `yardmaster scheduler --dask` on two free ports. */
  async scheduler(
    ...flags: string[]
  ): Promise<{ readonly run: Run; readonly dask: string; readonly own: string }> {
    const ports = ['--port', '0', '--dask-port', '0', '--python', this.python];
    const run = this.yardmaster('scheduler', '--dask', ...ports, ...flags);
    const [dask, own] = (await run.addresses(2)) as [string, string];
    return { run, dask, own };
  }

  /** A `dask worker`. */
  worker(address: string, flags: readonly string[]): Run {
    const args = ['-m', 'distributed.cli.dask_worker', address, '--no-dashboard', ...flags];
    return this.start(this.python, args);
  }

  /** A script of Python. */
  script(...args: string[]): Run {
    return this.start(this.python, args);
  }
}

/**
 * Plays a scenario of a script with real workers against a scheduler of this process.
 * Returns what its last line says, as JSON.
 *
 * @param config - section `scheduler`
 */
export async function playScript(
  { python, script, scenario }: Readonly<Record<'python' | 'script' | 'scenario', string>>,
  config: object = {},
): Promise<unknown> {
  const bench = await DaskBench.start(config, python);
  try {
    const args = [script, bench.address, scenario];
    const { stdout } = await promisify(execFile)(python, args, { timeout: 170_000 });
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  } finally {
    await bench.close();
  }
}
