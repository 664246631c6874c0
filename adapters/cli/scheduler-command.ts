import { type Logger, YardmasterError } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/compose/scheduler.ts';
import { openScheduler } from '../app/start-scheduler.ts';
import { readDaskTlsConfig } from '../dask-wire/tls-config.ts';
import { tuneEngine } from './engine-flags.ts';
import { type LogFlags, stderrLogger } from './logger.ts';
import { untilStopped } from './until-stopped.ts';

/** Flags of `scheduler`. */
export interface SchedulerFlags extends LogFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: number;
  /** Also listen for Dask. */
  readonly dask?: boolean;
  readonly daskPort?: number;
  readonly python?: string;
  /** Certificates for Dask; with any of them its address is encrypted. */
  readonly tlsCaFile?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/** Where Dask's schedulers listen. */
const DASK_PORT = 8786;

/** `yardmaster scheduler`. Runs until it is stopped. */
export async function schedulerCommand(flags: SchedulerFlags): Promise<number> {
  tuneEngine();
  checkFlags(flags);
  const { config } = flags;
  const log = stderrLogger(flags, 'scheduler');
  const running = await openScheduler({ log, ...(config === undefined ? {} : { config }) });
  const stopped = untilStopped(running);
  stopped.catch(() => undefined); // Awaited below, once it listens.
  let addresses: readonly string[];
  try {
    addresses = await listen(running.scheduler, flags, log);
  } catch (error) {
    await running.close();
    throw error;
  }
  // Written last, because a script may send a signal as soon as it reads them.
  for (const address of addresses) process.stdout.write(`${address}\n`);
  return stopped;
}

/** @throws YardmasterError `ERR_CONFIG` when a flag has no effect without `--dask` */
function checkFlags(flags: SchedulerFlags): void {
  if (flags.dask === true || !namesCertificates(flags)) return;
  throw new YardmasterError(
    'ERR_CONFIG',
    "--tls-ca-file, --tls-cert and --tls-key encrypt the address for Dask; add --dask. Yardmaster's own protocol has no encryption yet",
  );
}

/**
 * Opens the addresses of the scheduler. When the address for Dask is encrypted, nothing else listens:
 * the own protocol would let unauthenticated peers into the same cluster.
 * @returns what to print, the address for Dask first
 */
async function listen(
  scheduler: Scheduler,
  flags: SchedulerFlags,
  log: Logger,
): Promise<readonly string[]> {
  const dask = await daskAddressOf(scheduler, flags);
  const configured = scheduler.config.scheduler.address;
  if (dask?.startsWith('tls:') === true && configured.startsWith('tcp:')) {
    const isAsked = flags.port !== undefined && flags.daskPort !== undefined;
    if (isAsked) {
      log.warn(
        { port: flags.port },
        `port ${flags.port} is not opened: ${dask} is encrypted, and the own protocol on the same cluster would not be`,
      );
    }
    return [dask];
  }
  const own = await listenForOwn(scheduler, ownAddressOf(configured, flags), flags, log);
  return flags.dask === true && dask !== undefined ? [dask, own] : [own];
}

/** Undefined when Dask is not served. The plugin may also come from the configuration. */
async function daskAddressOf(
  scheduler: Scheduler,
  flags: SchedulerFlags,
): Promise<string | undefined> {
  if (flags.dask === true) await addDask(scheduler, flags);
  else if (!scheduler.plugins.some(({ name }) => name === 'dask')) return undefined;
  const address = String(await scheduler.command('dask.address'));
  if (address.startsWith('tls:') || !namesCertificates(flags)) return address;
  throw new YardmasterError(
    'ERR_CONFIG',
    `certificates are named, and the plugin "dask" of the configuration listens at ${address} without encryption; change its address to tls://, or remove the plugin from the configuration`,
    { address },
  );
}

/** The plugin is there already when the configuration names it; flags then change nothing. */
async function addDask(scheduler: Scheduler, flags: SchedulerFlags): Promise<void> {
  const { host = '127.0.0.1', python } = flags;
  const shownHost = host.includes(':') ? `[${host}]` : host;
  await scheduler.addPlugin('dask', {
    idempotent: true,
    options: {
      address: `${daskSchemeOf(flags)}://${shownHost}:${daskPortOf(flags)}`,
      ...(python === undefined ? {} : { python }),
      tls: tlsFilesOf(flags),
    },
  });
}

/** A port that no flag asks for gives way to another one when it is taken. */
async function listenForOwn(
  scheduler: Scheduler,
  address: string,
  flags: SchedulerFlags,
  log: Logger,
): Promise<string> {
  try {
    return await scheduler.listen(address);
  } catch (error) {
    const isTaken =
      YardmasterError.is(error, 'ERR_CONNECT') && error.data['cause'] === 'EADDRINUSE';
    const isAsked = flags.port !== undefined && flags.daskPort !== undefined;
    if (!isTaken || isAsked || flags.dask !== true) throw error;
    const other = await scheduler.listen(address.replace(/:\d+$/, ':0'));
    log.warn({ address, other }, `${address} is taken; the own protocol listens at ${other}`);
    return other;
  }
}

/** Encrypted when certificates are named, or when Dask's configuration wants it so. */
function daskSchemeOf(flags: SchedulerFlags): 'tcp' | 'tls' {
  const isWanted = namesCertificates(flags) || readDaskTlsConfig(process.env).requireEncryption;
  return isWanted ? 'tls' : 'tcp';
}

function namesCertificates({ tlsCaFile, tlsCert, tlsKey }: SchedulerFlags): boolean {
  return [tlsCaFile, tlsCert, tlsKey].some((file) => file !== undefined);
}

function tlsFilesOf({ tlsCaFile, tlsCert, tlsKey }: SchedulerFlags): Record<string, string> {
  return {
    ...(tlsCaFile === undefined ? {} : { caFile: tlsCaFile }),
    ...(tlsCert === undefined ? {} : { cert: tlsCert }),
    ...(tlsKey === undefined ? {} : { key: tlsKey }),
  };
}

/** `--port` means Dask's port, as with `dask scheduler`, unless `--dask-port` names that one. */
function daskPortOf({ daskPort, port }: SchedulerFlags): number {
  return daskPort ?? port ?? DASK_PORT;
}

/** Flags win over the configuration, each for its part. The port keeps out of the way of Dask's. */
function ownAddressOf(configured: string, flags: SchedulerFlags): string {
  const { host, dask, daskPort } = flags;
  const parts = /^(?<scheme>[^:]+):\/\/(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(
    configured,
  );
  if (parts?.groups === undefined) return configured;
  const { scheme, host: itsHost, port: itsPort } = parts.groups;
  const wantedHost = host === undefined ? itsHost : host.includes(':') ? `[${host}]` : host;
  const isPortOfDask = dask === true && daskPort === undefined;
  const wantedPort = isPortOfDask && flags.port !== 0 ? undefined : flags.port;
  const isTaken = dask === true && Number(itsPort) === daskPortOf(flags);
  const port = wantedPort ?? (isTaken ? Number(itsPort) - 1 : (itsPort ?? 0));
  if (host === undefined && String(port) === itsPort) return configured;
  return `${scheme}://${wantedHost}:${port}`;
}
