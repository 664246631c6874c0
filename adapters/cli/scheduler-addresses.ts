import { type Logger, YardmasterError } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { DEFAULT_ADDRESS } from '../../core/config/schema.ts';
import { readDaskTlsConfig } from '../dask/tls-config.ts';
import { isLoopback } from '../../core/util/hosts.ts';
import { namesCertificates, type SchedulerCommand } from './flags.ts';

/** The port of Dask's schedulers. */
const DASK_PORT = 8786;

/**
 * The address of the configuration, plain with `--insecure`. The default is also plain when the configuration names `tcp`
 * as transport, and beside a port for Dask: a peer that is refused at an address with keys would go through that port.
 */
function configuredAddress(
  scheduler: Scheduler,
  { isInsecure }: SchedulerCommand,
  hasDask: boolean,
): string {
  const { address } = scheduler.config.scheduler;
  const isTcp = scheduler.transport?.scheme === 'tcp';
  const isPlain = isInsecure || ((hasDask || isTcp) && address === DEFAULT_ADDRESS);
  return isPlain ? address.replace(/^tls:/, 'tcp:') : address;
}

/**
 * Opens the addresses of the scheduler. When the address for Dask is encrypted, nothing else listens:
 * the own protocol would let unauthenticated peers into the same cluster.
 * @returns what to print, the address for Dask first
 */
export async function listen(
  scheduler: Scheduler,
  flags: SchedulerCommand,
  log: Logger,
): Promise<readonly string[]> {
  const dask = await daskAddressOf(scheduler, flags, log);
  const configured = configuredAddress(scheduler, flags, dask !== undefined);
  if (dask?.startsWith('tls:') === true && configured.startsWith('tcp:') && !flags.isSecure) {
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
  return flags.dask && dask !== undefined ? [dask, own] : [own];
}

/** Undefined when Dask is not served. The plugin may also come from the configuration. */
async function daskAddressOf(
  scheduler: Scheduler,
  flags: SchedulerCommand,
  log: Logger,
): Promise<string | undefined> {
  if (flags.dask) await addDask(scheduler, flags, log);
  else if (!scheduler.plugins.some(({ name }) => name === 'dask')) return undefined;
  const address = String(await scheduler.command('dask.address'));
  if (address.startsWith('tls:') || !namesCertificates(flags)) return address;
  throw new YardmasterError(
    'ERR_CONFIG',
    `certificates are named, and the plugin "dask" of the configuration listens at ${address} without encryption; change its address to tls://, or remove the plugin from the configuration`,
    { address },
  );
}

/** A plugin that the configuration names stays as it is configured there. */
async function addDask(scheduler: Scheduler, flags: SchedulerCommand, log: Logger): Promise<void> {
  const { host = '127.0.0.1', python, tls, options } = flags;
  if (scheduler.plugins.some(({ name }) => name === 'dask')) {
    log.warn(
      {},
      'the configuration names the plugin "dask", so that its options count, and the flags for Dask do not',
    );
    return;
  }
  const shownHost = host.includes(':') ? `[${host}]` : host;
  await scheduler.addPlugin('dask', {
    options: {
      ...options,
      address: `${daskSchemeOf(flags)}://${shownHost}:${daskPortOf(flags)}`,
      ...(python === undefined ? {} : { python }),
      tls,
    },
  });
}

/** A port that no flag asks for gives way to another one when it is taken. */
async function listenForOwn(
  scheduler: Scheduler,
  address: string,
  flags: SchedulerCommand,
  log: Logger,
): Promise<string> {
  try {
    return await scheduler.listen(address);
  } catch (error) {
    const isTaken =
      YardmasterError.is(error, 'ERR_CONNECT') && error.data['cause'] === 'EADDRINUSE';
    const isAsked = flags.port !== undefined && flags.daskPort !== undefined;
    if (!isTaken || isAsked || !flags.dask) throw error;
    const other = await scheduler.listen(address.replace(/:\d+$/, ':0'));
    log.warn({ address, other }, `${address} is taken; the own protocol listens at ${other}`);
    return other;
  }
}

/** Encrypted when certificates are named, or when Dask's configuration wants it so. */
function daskSchemeOf(flags: SchedulerCommand): 'tcp' | 'tls' {
  if (flags.protocol !== undefined) return flags.protocol;
  const isWanted = namesCertificates(flags) || readDaskTlsConfig(process.env).requireEncryption;
  return isWanted ? 'tls' : 'tcp';
}

/** `--port` means Dask's port, as with `dask scheduler`, unless `--dask-port` names that one. */
function daskPortOf({ daskPort, port }: SchedulerCommand): number {
  return daskPort ?? port ?? DASK_PORT;
}

/** Flags win over the configuration, each for its part. The port keeps out of the way of Dask's. */
function ownAddressOf(configured: string, flags: SchedulerCommand): string {
  const { host, dask, daskPort } = flags;
  const parts = /^(?<scheme>[^:]+):\/\/(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(
    configured,
  );
  if (parts?.groups === undefined) return configured;
  const { scheme, host: itsHost, port: itsPort } = parts.groups;
  const wantedHost = host === undefined ? itsHost : host.includes(':') ? `[${host}]` : host;
  const isPortOfDask = dask && daskPort === undefined;
  const wantedPort = isPortOfDask && flags.port !== 0 ? undefined : flags.port;
  const isTaken = dask && Number(itsPort) === daskPortOf(flags);
  const port = wantedPort ?? (isTaken ? Number(itsPort) - 1 : (itsPort ?? 0));
  const isBeyond = host !== undefined && !isLoopback(host) && !flags.isInsecure;
  const isSecured = scheme === 'tcp' && (flags.isSecure || isBeyond);
  if (host === undefined && String(port) === itsPort && !isSecured) return configured;
  return `${isSecured ? 'tls' : scheme}://${wantedHost}:${port}`;
}
