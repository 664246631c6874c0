import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { YardmasterError } from '../../../core/api/index.ts';
import { pythonCommands, type PythonCommand } from '../../dask/graph/index.ts';
import { untilDone } from '../with-client.ts';

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../../demo/dask-demo.py', import.meta.url));
const PROBE = 'import distributed, dask.array, dask.dataframe; print(distributed.__version__)';
const WORKERS = 2;

interface DaskDemoFlags {
  readonly python?: string;
}

/**
 * `yardmaster demo-dask`: a Yardmaster scheduler with Dask workers and a Dask client, each in a
 * separate process. Returns the exit code: 1 when a result is wrong.
 * @throws YardmasterError `ERR_CONFIG` when no Python has Dask
 */
export async function demoDaskCommand({ python }: DaskDemoFlags): Promise<number> {
  const { command, version } = findDask(python);
  process.stdout.write(`Python     ${command.join(' ')} with distributed ${version}\n`);
  const family = new Family();
  let code = 1;
  const stopped = await untilDone(
    async () => {
      code = await computeWith(command, family);
    },
    () => family.end(),
  );
  return stopped === 0 ? code : stopped;
}

async function computeWith(command: PythonCommand, family: Family): Promise<number> {
  const [python, ...args] = command;
  const ports = ['--port', '0', '--dask-port', '0', '--python', command.join(' ')];
  const scheduler = family.start(process.execPath, [PROGRAM, 'scheduler', '--dask', ...ports]);
  const address = await firstAddress(scheduler);
  process.stdout.write(`Scheduler  yardmaster scheduler --dask: ${address}\n`);
  for (let index = 0; index < WORKERS; index++) {
    const flags = ['--nthreads', '1', '--no-dashboard'];
    process.stdout.write(`           dask worker ${address} ${flags.join(' ')}\n`);
    family.start(python, [...args, '-m', 'distributed.cli.dask_worker', address, ...flags]);
  }
  const client = family.start(python, [...args, SCRIPT, address]);
  client.stdout?.pipe(process.stdout, { end: false });
  client.stderr?.pipe(process.stderr, { end: false });
  return new Promise((resolve, reject) => {
    client.once('error', reject);
    client.once('close', (code) => resolve(code ?? 1));
  });
}

/** The first Python that has all of Dask that is needed. */
function findDask(python: string | undefined): { command: PythonCommand; version: string } {
  const commands = pythonCommands(python);
  for (const command of commands) {
    const [program, ...args] = command;
    const { status, stdout } = spawnSync(program, [...args, '-c', PROBE], { encoding: 'utf8' });
    if (status === 0) return { command, version: stdout.trim() };
  }
  const tried = commands.map((command) => command.join(' ')).join(', ');
  throw new YardmasterError(
    'ERR_CONFIG',
    `no Python was found that has dask.array, dask.dataframe and distributed (tried: ${tried}). Install them (pip install "dask[complete]" distributed), or name another Python with --python`,
    { tried: commands },
  );
}

/** Processes that end with this one. What they say on standard error is shown when they fail. */
class Family {
  private readonly members = new Set<ChildProcess>();

  start(program: string, args: readonly string[]): ChildProcess {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.members.add(child);
    child.once('error', () => this.members.delete(child));
    child.once('close', () => this.members.delete(child));
    child.stdout.resume();
    child.stderr.resume();
    return child;
  }

  /** The youngest first: clients and workers say goodbye to a scheduler that is still there. */
  async end(): Promise<void> {
    for (const child of [...this.members].toReversed()) {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
      await closed;
      clearTimeout(timer);
    }
  }
}

function firstAddress(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)));
    if (child.stdout !== null) {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const address = /(?:tcp|tls):\/\/\S+:\d+/.exec(line)?.[0];
        if (address !== undefined) resolve(address);
      });
    }
    child.once('error', reject);
    child.once('close', (code) => {
      const message = `the scheduler ended before it listened (exit code ${String(code)}): ${said}`;
      reject(new YardmasterError('ERR_CONNECT', message));
    });
  });
}
