#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseBytes, parseDurationMs } from '../../core/config/units.ts';
import { VERSION } from '../../core/api/version.ts';
import { LOG_LEVELS, type LogFlags } from './logger.ts';
import { errorText } from './report-error.ts';
import type { SchedulerFlags } from './scheduler-command.ts';
import type { ZeroWorkersFlags } from './zero-workers-command.ts';

const FAILURE_CODE = 1;

/** What every command has. */
interface CommonOptions extends LogFlags {
  readonly verbose?: boolean;
}

const program = new Command('yardmaster')
  .description('A scheduler for graphs of tasks, and the workers that compute them.')
  .version(VERSION)
  .showHelpAfterError('(add --help for what can be said)')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo                                    index real text on two worker processes
  $ yardmaster scheduler --port 8786                   start a scheduler on this machine
  $ yardmaster worker tcp://127.0.0.1:8786             start a worker for it
  $ yardmaster check-config cluster.yaml               see what a configuration would start

Results go to stdout, logs and progress to stderr. Ctrl-C closes in good order; a second one does not wait.`,
  );

common(program.command('scheduler'))
  .description('Start a scheduler. Prints its address as one line once it listens.')
  .option('-c, --config <file>', 'configuration file (YAML, JSON or a JavaScript module)')
  .option('--host <host>', 'host to listen on; 0.0.0.0 for all (default: of the configuration)')
  .option(
    '-p, --port <port>',
    'port to listen on, with --dask that for Dask; 0 for any (default: of the configuration)',
    port,
  )
  .option('--dask', 'also take the place of `dask scheduler`, for clients and workers of Dask')
  .option(
    '--dask-port <port>',
    'port for Dask; --port is then that of the own protocol (default: --port, else 8786)',
    port,
  )
  .option('--python <command>', 'Python with the packages of your Dask clients (default: found)')
  .option('--tls-ca-file <file>', "authority of Dask's certificates; Dask's address becomes tls://")
  .option('--tls-cert <file>', "the scheduler's certificate for Dask (PEM)")
  .option('--tls-key <file>', 'its key (PEM)')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster scheduler
  tcp://127.0.0.1:8786
  $ yardmaster scheduler --config cluster.yaml --host 0.0.0.0 --port 9000
  $ yardmaster scheduler --dask
  tcp://127.0.0.1:8786
  tcp://127.0.0.1:8785

With --dask the first line is the address for Dask, and the port of the other one keeps out of its way.

Dask's address can be encrypted (--tls-ca-file, --tls-cert, --tls-key, or Dask's own configuration). Then it is
the only one: the own protocol has no encryption, and does not listen. Otherwise there is neither encryption
nor a password: listen only where everybody is trusted.`,
  )
  .action(async (options: CommonOptions & SchedulerFlags) => {
    const { schedulerCommand } = await import('./scheduler-command.ts');
    await run(options, () => schedulerCommand(options));
  });

common(program.command('worker'))
  .description('Start a worker that computes for a scheduler.')
  .argument('<address>', 'address of the scheduler, such as tcp://127.0.0.1:8786')
  .option('-c, --config <file>', 'configuration file; flags win over it')
  .option('-t, --threads <n>', 'tasks at once (default: number of processors)', positive)
  .option('-n, --name <name>', 'name for people and for restrictions (default: the address)')
  .option('-r, --resources <list>', "what tasks can ask for, as 'GPU=1 licence=2'", resources)
  .option('-m, --memory-limit <size>', 'bytes of memory, as 2GiB (default: unlimited)', size)
  .option('--memory <list>', "how it keeps that limit, as 'target=0.5 maxSpill=20GiB'", settings)
  .option('--spill-folder <folder>', 'where results go that have no room (default: of the system)')
  .addOption(
    new Option(
      '--ready <strategy>',
      'which of the ready tasks runs first (default: priority)',
    ).choices(['priority', 'lifo']),
  )
  .option('--host <host>', 'host under which other workers reach this one (default: 127.0.0.1)')
  .option('--kill-grace <time>', 'how long an aborted task may go on, as 5s (default: 5s)', time)
  .option('--nanny', 'replace the process when it dies or is stuck (default)')
  .option('--no-nanny', 'run the worker in this very process')
  .addOption(new Option('--supervised').hideHelp())
  .addOption(new Option('--settings <json>').hideHelp())
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster worker tcp://127.0.0.1:8786 --threads 4
  $ yardmaster worker tcp://127.0.0.1:8786 --name gpu-1 --resources 'GPU=1' --memory-limit 8GiB`,
  )
  .action(async (address: string, options: CommonOptions & WorkerFlags) => {
    const { workerCommand } = await import('./worker-command.ts');
    await run(options, () => workerCommand(address, options));
  });

common(program.command('demo'))
  .description('Index real text with hundreds of tasks, ask it something, and check the answer.')
  .option(
    '-c, --config <file>',
    'configuration of the scheduler and its policies; flags win over it',
  )
  .option('--path <folder>', 'folder with text, .gz too (default: manual pages, else node_modules)')
  .option('-w, --workers <n>', 'worker processes', positive, 2)
  .option('-t, --threads <n>', 'tasks at once per worker', positive, 1)
  .option('-q, --query <words>', 'what to ask', 'schedule process priority')
  .option('--limit-files <n>', 'files to index, spread evenly over all', positive, 6000)
  .option('--chaos [kills]', 'kill workers at random moments, so often (default: 10)', positive)
  .option('--seed <n>', 'of the moments (default: by the clock)', count)
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo
  $ yardmaster demo --query 'socket address' --workers 4
  $ yardmaster demo --path ~/notes --limit-files 500
  $ yardmaster demo --chaos --seed 7                   kill a worker ten times meanwhile
  $ yardmaster demo --config cluster.yaml              see what other policies make of it

Exit code 1 when the result differs from that of a plain pass in one thread.`,
  )
  .action(async (options: CommonOptions & DemoFlags) => {
    const { demoCommand } = await import('./demo-command.ts');
    await run(options, () => demoCommand(options));
  });

common(program.command('demo-dask'))
  .description(
    "Run Dask's own client and workers with this scheduler, and check what they compute.",
  )
  .option('--python <command>', 'a Python that has dask and distributed (default: found)')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster demo-dask
  $ yardmaster demo-dask --python ~/venv/bin/python

Exit code 1 when a result differs from that of NumPy or pandas.`,
  )
  .action(async (options: CommonOptions & { python?: string }) => {
    const { demoDaskCommand } = await import('./demo-dask-command.ts');
    await run(options, () => demoDaskCommand(options));
  });

common(program.command('why'))
  .description('Tell why a task is where it is, and how it got there.')
  .argument('<key>', 'key of the task')
  .requiredOption('-s, --scheduler <address>', 'address of the scheduler')
  .option('--record <n>', 'from now on keep the newest n decisions with their candidates', count)
  .option('--json', 'as JSON')
  .addHelpText(
    'after',
    `
Examples:
  $ yardmaster why sum-12 --scheduler tcp://127.0.0.1:8786
  $ yardmaster why sum-12 --scheduler tcp://127.0.0.1:8786 --record 10000

Candidates are told for decisions that were recorded: with --record, or scheduler.decisionLogLength in
the configuration. Exit code 1 when the scheduler does not know the key.`,
  )
  .action(async (key: string, options: CommonOptions & WhyFlags) => {
    const { whyCommand } = await import('./why-command.ts');
    await run(options, () => whyCommand(key, options));
  });

common(program.command('zero-workers'))
  .description('Start workers that compute nothing, to measure a scheduler alone.')
  .argument('<address>', 'address of the scheduler, such as tcp://127.0.0.1:8786')
  .option('-w, --workers <n>', 'how many', positive, 100)
  .option('-t, --threads <n>', 'tasks at once for each', positive, 1)
  .option('--result-size <size>', 'bytes that they report for each result', size, 0)
  .addHelpText(
    'after',
    `
Example:
  $ yardmaster zero-workers tcp://127.0.0.1:8786 --workers 1000

They report each task as finished at once and claim every replica. They have no results: clients can
wait for tasks, and not gather them.`,
  )
  .action(async (address: string, options: CommonOptions & ZeroWorkersFlags) => {
    const { zeroWorkersCommand } = await import('./zero-workers-command.ts');
    await run(options, () => zeroWorkersCommand(address, options));
  });

common(program.command('check-config'))
  .description('Load a configuration and everything it names, and print what it would start.')
  .argument('<file>', 'configuration file')
  .addHelpText(
    'after',
    `
Example:
  $ yardmaster check-config cluster.yaml

Modules that the file names are loaded, but nothing is set up, and nothing listens.
Exit code 1, with one line for each problem, when it is not usable.`,
  )
  .action(async (file: string, options: CommonOptions) => {
    const { checkConfigCommand } = await import('./check-config-command.ts');
    await run(options, () => checkConfigCommand(file, options));
  });

/** Flags of `worker`. */
export interface WorkerFlags {
  readonly config?: string;
  readonly threads?: number;
  readonly name?: string;
  readonly resources?: Readonly<Record<string, number>>;
  readonly memoryLimit?: number;
  readonly memory?: Readonly<Record<string, number | string | boolean>>;
  readonly spillFolder?: string;
  readonly ready?: 'priority' | 'lifo';
  readonly host?: string;
  readonly killGrace?: number;
  readonly nanny?: boolean;
  /** Set by a nanny for the process that it looks after. */
  readonly supervised?: boolean;
  /** Set by a local cluster: the rest of the configuration. */
  readonly settings?: string;
}

/** Flags of `why`. */
export interface WhyFlags {
  readonly scheduler: string;
  readonly record?: number;
  readonly json?: boolean;
}

/** Flags of `demo`. */
export interface DemoFlags {
  readonly config?: string;
  readonly path?: string;
  readonly workers: number;
  readonly threads: number;
  readonly query: string;
  readonly limitFiles: number;
  /** Kills; true: a few. */
  readonly chaos?: number | true;
  readonly seed?: number;
}

await program.parseAsync();

function common(command: Command): Command {
  return command
    .option('-v, --verbose', 'errors with their stack')
    .addOption(new Option('--log-level <level>', 'what to log').choices(LOG_LEVELS).default('warn'))
    .addOption(
      new Option(
        '--log-format <format>',
        'how (default: text on a terminal, otherwise json)',
      ).choices(['text', 'json']),
    );
}

/** Runs a command to its end; an error becomes a message and exit code 1. */
async function run(options: CommonOptions, command: () => Promise<number>): Promise<void> {
  let code = FAILURE_CODE;
  try {
    code = await command();
  } catch (error) {
    process.stderr.write(`${errorText(error, options.verbose === true)}\n`);
  }
  // Pipes may still hold output; exit only when they took it.
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => {
      resolve();
    });
  });
}

function positive(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError('It must be a whole number, at least 1.');
}

function count(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be a whole number, 0 or more.');
}

function port(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= 65_535) return value;
  throw new InvalidArgumentError('It must be a whole number from 0 to 65535.');
}

function size(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== undefined && Number.isFinite(bytes) && bytes >= 0) return bytes;
  throw new InvalidArgumentError('It must be a size, such as 500MB or 2GiB.');
}

function time(text: string): number {
  const ms = parseDurationMs(text);
  if (ms !== undefined && ms >= 0) return ms;
  throw new InvalidArgumentError('It must be a time, such as 5s, 500 ms or inf.');
}

/** Names are checked later, with everything else about them. */
function settings(text: string): Record<string, number | string | boolean> {
  const found: Record<string, number | string | boolean> = {};
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const match = /^([^=]+)=([^=]+)$/.exec(part);
    if (match === null) {
      throw new InvalidArgumentError(`"${part}" is not of the form name=value, such as pause=0.9.`);
    }
    const value = match[2] as string;
    const number = Number(value);
    found[match[1] as string] = value === 'false' ? false : Number.isNaN(number) ? value : number;
  }
  return found;
}

function resources(text: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const match = /^([^=]+)=(\d+(?:\.\d+)?)$/.exec(part);
    if (match === null) {
      throw new InvalidArgumentError(`"${part}" is not of the form name=amount, such as GPU=1.`);
    }
    found[match[1] as string] = Number(match[2]);
  }
  return found;
}
