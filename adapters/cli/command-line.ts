/** The common part of the definitions of commands: flags, how they run, and readers of values. */
import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';

import { type Command, InvalidArgumentError, Option } from 'commander';

import { YardmasterError } from '../../core/api/index.ts';
import { check, type Schema, wholeNumber } from '../../core/shared/schema.ts';
import { TIMEOUT_MS_MAX } from '../clocks/system-clock.ts';
import { exitProcess } from '../executors/threads/spawn.ts';
import { CERTIFICATE_VARIABLES } from '../transports/access.ts';
import { permitInsecure } from '../transports/tcp/socket-layer.ts';
import { errorText, LOG_LEVELS, type LogFlags, say } from './terminal.ts';

const FAILURE_CODE = 1;

export interface CommonOptions extends LogFlags {
  readonly verbose?: boolean;
  readonly access?: string;
  /** Certificates in the place of an access file; with `--dask` they are for Dask's address. */
  readonly tlsCaFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly dask?: boolean;
  /** Plain listeners beyond this machine are permitted; where a command has the flag. */
  readonly insecure?: boolean;
}

export function common(command: Command): Command {
  return command
    .option('-v, --verbose', 'errors with their stack')
    .option('--access <file>', 'access file of the cluster (default: what its scheduler left here)')
    .option(
      '--tls-ca-file <file>',
      "authority of certificates of one's own, in the place of an access file; with --dask for Dask",
    )
    .option('--tls-cert <file>', 'own certificate (PEM)')
    .option('--tls-key <file>', 'its key (PEM)')
    .addOption(new Option('--log-level <level>', 'what to log').choices(LOG_LEVELS).default('warn'))
    .addOption(
      new Option(
        '--log-format <format>',
        'how (default: text on a terminal, otherwise json)',
      ).choices(['text', 'json']),
    );
}

/** The address of a scheduler that was told nothing else. */
const USUAL_SCHEDULER = 'tls://127.0.0.1:8786';

/** The flag of commands that ask a scheduler: without it, the one of the environment or the usual one of this machine. */
export function schedulerOption(): Option {
  return new Option('-s, --scheduler <address>', 'address of the scheduler; tls:// may be left out')
    .env('YARDMASTER_SCHEDULER')
    .default(USUAL_SCHEDULER)
    .argParser(schedulerAddress);
}

/** An address as people write it: of `host:port` the scheme is that of a scheduler that was told nothing else. */
export function schedulerAddress(text: string): string {
  return /^[^/]+:\d+$/.test(text) ? `tls://${text}` : text;
}

/** Runs a command to its end; an error becomes a message and exit code 1. */
export async function run(options: CommonOptions, command: () => Promise<number>): Promise<void> {
  let code = FAILURE_CODE;
  // A reader that is gone, such as `head` or a collector of logs that was restarted, ends no scheduler and no worker.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreBrokenPipe);
  try {
    // Processes that this one starts belong to the same cluster.
    if (options.access !== undefined) nameAccess(options.access);
    if (options.dask !== true) nameCertificates(options);
    if (options.insecure === true) permitInsecure();
    code = await command();
  } catch (error) {
    say(`${errorText(error, options.verbose === true)}\n`, process.stderr);
  }
  // Pipes may still hold output; exit only when they took it.
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  exitProcess(code);
}

/**
 * The action of a command, which is loaded when it is called and {@link run} with what commander gives: the arguments, the
 * flags, and at the end commander itself.
 */
export function running<Args extends readonly unknown[]>(
  load: () => Promise<(...args: Args) => number | Promise<number>>,
): (...given: unknown[]) => Promise<void> {
  return (...given) => {
    const args = given.slice(0, -1);
    return run(args.at(-1) as CommonOptions, async () => (await load())(...(args as never)));
  };
}

/** For this process and those that it starts. Certificates that the environment names do not count then. */
function nameAccess(file: string): void {
  process.env['YARDMASTER_ACCESS'] = resolve(file);
  for (const name of Object.values(CERTIFICATE_VARIABLES))
    Reflect.deleteProperty(process.env, name);
}

/** For this process and those that it starts. */
function nameCertificates({ tlsCaFile: ca, tlsCert: cert, tlsKey: key }: CommonOptions): void {
  for (const [what, file] of Object.entries({ ca, cert, key })) {
    const name = CERTIFICATE_VARIABLES[what as keyof typeof CERTIFICATE_VARIABLES];
    if (file !== undefined) process.env[name] = resolve(file);
  }
}

function ignoreBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => {
      resolve();
    });
  });
}

/** Reads the value of a flag by its rule: a number, or a quantity with its unit. */
const reading =
  (rule: Schema) =>
  (text: string): number => {
    const number = text.trim() === '' ? NaN : Number(text);
    const given = rule.unit !== undefined || Number.isNaN(number) ? text : number;
    const { value, problems } = check(rule, given);
    const [problem] = problems;
    if (problem === undefined) return value as number;
    throw new InvalidArgumentError(`It ${problem.message}.`);
  };

export const positive = reading(wholeNumber(1));
export const count = reading(wholeNumber(0));
export const port = reading({ type: 'integer', minimum: 0, maximum: 65_535 });
export const amount = reading({ type: 'number', minimum: 0, maximum: Number.MAX_VALUE });
export const size = reading({ unit: 'bytes', minimum: 0 });
/** Bytes per second. */
export const rate = reading({ unit: 'bytes', minimum: 1 });
export const time = reading({ unit: 'ms', minimum: 0, infinite: true });
/** Between two looks. */
export const pauseTime = reading({ unit: 'ms', minimum: 1, maximum: TIMEOUT_MS_MAX });

/** Names and values, as `pause=0.9 maxSpill=20GiB`; they are checked later, with everything else about them. */
export function pairs(text: string): Record<string, number | string | boolean> {
  const found: Record<string, number | string | boolean> = {};
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const match = /^([^=]+)=([^=]+)$/.exec(part);
    if (match === null) {
      throw new InvalidArgumentError(`"${part}" is not of the form name=value.`);
    }
    const value = match[2] as string;
    const number = Number(value);
    found[match[1] as string] = value === 'false' ? false : Number.isNaN(number) ? value : number;
  }
  return found;
}

/** Paths of flags are relative to the current folder, not to a configuration file. */
export function fromHere(module: string): string {
  const [path = '', name] = module.split('#');
  if (!path.startsWith('.') && !existsSync(path)) return module;
  return name === undefined ? resolve(path) : `${resolve(path)}#${name}`;
}

/** @throws YardmasterError `ERR_CONFIG` when what is written would take the place of the file that is read */
export function checkOutput(output: string | undefined, source: string): void {
  if (output === undefined || !existsSync(output) || !existsSync(source)) return;
  if (realpathSync(output) !== realpathSync(source)) return;
  const message = `${output} is the file that is read, and would be lost; name another one`;
  throw new YardmasterError('ERR_CONFIG', message, { file: output });
}

/** A time after which something ends; 0 means never, as with Dask. */
export function idleTime(text: string): string {
  return time(text) === 0 ? 'inf' : text;
}

/** A flag that may be given several times. */
export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

/** An object, as JSON. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // Reported below, with an example.
  }
  throw new InvalidArgumentError(
    'It must be an object as JSON, such as \'{"workerSaturation": 2}\'.',
  );
}
