import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import {
  type Clock,
  type StoreSpec,
  type Transport,
  YardmasterError,
} from '../../core/api/index.ts';
import { writtenOf } from '../../core/shared/settings.ts';
import { DEFAULT_ADDRESS, WORKER_SCHEMA } from '../../core/config/schema.ts';
import type { Config, WorkerConfig } from '../../core/config/types.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { checkCall } from '../../core/shared/schema.ts';
import { SystemClock } from '../clocks/index.ts';
import { removePrivateFolder } from '../log/private-folder.ts';
import { Nanny } from '../nanny/index.ts';
import { inspectArgument } from '../nanny/worker-process.ts';
import { AllowedModules, codeRootAt } from '../tasks/index.ts';
import { InMemoryTransport } from '../transports/memory.ts';
import type { ClusterWorker, WorkerStarter } from './lifetime.ts';
import { LOCAL_CLUSTER_RULES, type LocalClusterOptions } from './local-cluster-options.ts';
import { openScheduler, type RunningScheduler } from './start-scheduler.ts';
import { configuredStore, NannyPlugins, runWorker, sendable } from './start-worker.ts';
import { textLogger } from './text-log.ts';

export interface LocalParts {
  readonly running: RunningScheduler;
  readonly starter: WorkerStarter;
  /** The address at which clients of this process reach the scheduler. */
  readonly clientAddress: string;
  /** For clients. */
  readonly transports: readonly Transport[];
  /** The store of results of workers, and of clients that name no other one. */
  readonly resultStore?: StoreSpec | undefined;
}

/**
 * Starts the scheduler of a local cluster, and says how to start its workers. They and the clients use the
 * transport of the options, else that of the configuration, else the default of the mode.
 */
export async function startLocal(options: LocalClusterOptions): Promise<LocalParts> {
  checkCall('LocalCluster.start', options, LOCAL_CLUSTER_RULES);
  const { mode = 'threads', clock = new SystemClock(), config, log, journal } = options;
  const { record, recordKeep, recordings, provide } = options;
  const within = new InMemoryTransport(clock, { byReference: true });
  const chosen = mode === 'processes' ? undefined : within;
  const keys = mode === 'processes' ? await localKeys(clock) : undefined;
  const worker = writtenOf(WORKER_SCHEMA, options);
  const open = await openScheduler({
    layers: { overrides: { worker, scheduler: { transport: options.transport } } },
    clock,
    fallbackTransports: keys === undefined ? [within] : [within, keys.transport],
    config,
    log,
    provide,
    record,
    recordKeep,
    recordings,
    journal,
  });
  try {
    const { scheduler } = open;
    await addDashboard(scheduler, options);
    const configured = scheduler.transport;
    const used = (await hasPlainDask(scheduler)) ? undefined : keys;
    const transport = configured ?? chosen ?? used?.transport ?? (await defaultTcp(clock));
    if (mode === 'processes') checkReach(transport, configured);
    const address = await scheduler.listen(listenAddress(transport, scheduler.config));
    const access = transport === used?.transport ? used.fileFor(address) : undefined;
    if (access !== undefined) scheduler.events.once('closed', () => used?.remove());
    const running = { ...open, address };
    const starter =
      mode === 'processes'
        ? processStarter(running, options, clock, access)
        : guestStarter(running, { ...options, mode }, { clock, transport });
    const { resultStore } = scheduler.config.worker;
    // Workers of other processes are far; clients of this one are not, unless a transport was chosen.
    const isWithin = mode === 'processes' && configured === undefined;
    const clientAddress = isWithin ? await scheduler.listen('inmemory://scheduler') : address;
    return {
      running,
      starter,
      clientAddress,
      resultStore:
        resultStore === undefined ? undefined : configuredStore(resultStore, folderOf(options)),
      transports: isWithin ? [transport, within] : [transport],
    };
  } catch (error) {
    await open.close();
    throw error;
  }
}

async function addDashboard(
  scheduler: Scheduler,
  { dashboard = false }: LocalClusterOptions,
): Promise<void> {
  if (dashboard === false) return;
  const options = dashboard === true ? {} : dashboard;
  await scheduler.addPlugin('dashboard', { options, idempotent: true });
}

function checkReach({ scheme }: Transport, configured: Transport | undefined): void {
  if (configured === undefined || scheme !== 'inmemory') return;
  throw new YardmasterError(
    'ERR_CONFIG',
    'scheduler.transport is inmemory, which cannot reach workers in separate processes; use tcp, or another mode',
    { transport: scheme },
  );
}

/** The configured address if it is one of that transport; TCP, and TLS by default, take a free port. */
function listenAddress({ scheme }: Transport, { scheduler }: Config): string {
  const { address } = scheduler;
  if (scheme === 'tcp' || (scheme === 'tls' && address === DEFAULT_ADDRESS)) {
    return `${scheme}://127.0.0.1:0`;
  }
  return address.startsWith(`${scheme}://`) ? address : `${scheme}://local:0`;
}

/** A peer that is refused at an address with keys would go through Dask's port. */
async function hasPlainDask(scheduler: Scheduler): Promise<boolean> {
  if (!scheduler.plugins.some(({ name }) => name === 'dask')) return false;
  return !String(await scheduler.command('dask.address')).startsWith('tls:');
}

async function defaultTcp(clock: Clock): Promise<Transport> {
  const { tcp } = await import('../peers/tcp.ts');
  return tcp.create({ clock }, {});
}

/**
 * The shape of each worker: as the options say, else as the configuration says, else with one thread, and the executor
 * of the mode.
 */
function workerConfig(
  { scheduler }: RunningScheduler,
  { mode }: LocalClusterOptions,
): WorkerConfig {
  const { worker } = scheduler.config;
  const { threads = 1, executor = mode === 'inline' ? { use: 'inline' } : undefined } = worker;
  return { ...worker, threads, executor };
}

/** Workers in this process. */
function guestStarter(
  running: RunningScheduler,
  options: LocalClusterOptions,
  { clock, transport }: { readonly clock: Clock; readonly transport: Transport },
): WorkerStarter {
  const { log, codeRoot } = options;
  const config = workerConfig(running, options);
  return async (name) => {
    const worker = await runWorker(running.address, config, {
      name,
      isGuest: true,
      folder: folderOf(options),
      codeRoot,
      transports: [transport],
      clock,
      validate: running.scheduler.config.scheduler.validate,
      log,
    });
    let reason: unknown;
    const ended = worker.closed.catch((error: unknown) => {
      reason = error;
    });
    const deathError = (): Error =>
      new YardmasterError(
        'ERR_NO_WORKER',
        `the worker "${name}" closed`,
        { worker: name },
        { cause: reason },
      );
    return { name, ended, deathError, close: () => worker.close() } satisfies ClusterWorker;
  };
}

/** Options of Node that say how modules are loaded. Each has a value, after `=` or as the next argument. */
const LOADING = /^(?:--import|--require|-r|--loader|--experimental-loader|--conditions|-C)(=|$)/;

/** Of the arguments of this process, those that say how modules are loaded. */
function loadersHere(): string[] {
  return process.execArgv.flatMap((argument, at, all) => {
    const separator = LOADING.exec(argument)?.[1];
    if (separator === undefined) return [];
    return separator === '=' ? [argument] : all.slice(at, at + 2);
  });
}

/** Workers in separate processes, each with a nanny in this one. */
function processStarter(
  running: RunningScheduler,
  options: LocalClusterOptions,
  clock: Clock,
  access: string | undefined,
): WorkerStarter {
  const config = workerConfig(running, options);
  const { stuckAfter, nannyPlugins, nannyPreload, allowModules } = config;
  const folder = folderOf(options);
  const codeRoot = options.codeRoot === undefined ? undefined : codeRootAt(options.codeRoot);
  const settings = sendable({
    scheduler: running.address,
    // The program that starts a cluster runs whatever it likes.
    config: { ...config, allowModules: allowModules ?? ['*'] },
    transport: running.scheduler.config.scheduler.transport,
    ...{ folder, codeRoot, access },
    // Its log is for the terminal in which the cluster was started.
    ...{ logFormat: 'text', logLevel: 'warn' },
  });
  const modules = allowModules && AllowedModules.of(allowModules, folder, options.codeRoot);
  const log = options.log ?? textLogger('cluster');
  const { execArgv = loadersHere() } = options;
  const debuggerOf = debuggers(options.inspect);
  return async (name) => {
    const attach = debuggerOf();
    const onStderr = stderrReader(options, attach.length > 0);
    const plugins = await NannyPlugins.start({
      ...{ name, plugins: nannyPlugins, preload: nannyPreload, modules, folder, clock, log },
    });
    const nanny = new Nanny({
      name,
      settings: { ...settings, name },
      clock,
      log,
      // A worker that stands at a breakpoint is not stuck.
      stuckAfterMs: attach.length === 0 ? stuckAfter : Infinity,
      retireMs: config.retireTimeout,
      nodeArgs: [...execArgv, ...attach],
      onStderr,
      hooks: plugins.hooks,
      plugins: plugins.remote,
      rules: config.nanny ? {} : { attemptsMax: 0 },
    });
    plugins.serve(nanny);
    return {
      name,
      get pid() {
        return nanny.pid;
      },
      ended: nanny.ended.then(() => plugins.close()),
      deathError: () => nanny.deathError(),
      // The cluster closes as a whole, or the scheduler computes again what is needed.
      close: () => nanny.close(0),
    };
  };
}

/** Passes on what a debugger needs, which is written before the worker has registered. Undefined: the nanny's default. */
function stderrReader(
  { onStderr }: LocalClusterOptions,
  isDebugged: boolean,
): ((text: string, hasRegistered: boolean) => void) | undefined {
  const read = onStderr ?? (isDebugged ? (text: string) => process.stderr.write(text) : undefined);
  if (read === undefined) return undefined;
  return (text, hasRegistered) => {
    if (hasRegistered || isDebugged) read(text);
  };
}

/** The arguments of Node by which a debugger can attach to the next worker. */
function debuggers(inspect: boolean | number = false): () => readonly string[] {
  if (inspect === false) return () => [];
  let port = Number(inspect) > 1 ? Number(inspect) : 0;
  return () => [inspectArgument(port === 0 ? 0 : port++)];
}

/** The folder that relative paths of the configuration are relative to. */
function folderOf({ config }: LocalClusterOptions): string {
  return typeof config === 'string' ? dirname(resolve(config)) : process.cwd();
}

/** The keys with which the processes of a local cluster reach each other: new ones, which other users cannot read. */
export interface LocalKeys {
  readonly transport: Transport;
  /** Path of the access file of the scheduler at this address. */
  fileFor(address: string): string;
  /** Deletes what the transport does not delete when it stops listening. */
  remove(): void;
}

/**
 * The access file is that of the scheduler's port, where other processes of the same user find it. Where the home
 * folder cannot be written, it is in a new folder for temporary files, and only the workers get its path.
 */
export async function localKeys(clock: Clock): Promise<LocalKeys> {
  const { accessFileFor, accessFolder, TlsTransport } = await import('../transports/tls.ts');
  const access = isWritable(accessFolder()) ? undefined : temporaryFile();
  return {
    transport: new TlsTransport(clock, {
      environment: false,
      access,
    }),
    fileFor: (address) => accessFileFor(address, access, false).path,
    remove: () => {
      if (access !== undefined) removePrivateFolder(dirname(access));
    },
  };
}

/** Its folder is made with the file, for this user alone. */
function temporaryFile(): string {
  return join(tmpdir(), `yardmaster-access-${randomBytes(8).toString('hex')}`, 'access.json');
}

function isWritable(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
