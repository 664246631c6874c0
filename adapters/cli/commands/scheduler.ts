import { type Logger, YardmasterError } from '../../../core/api/index.ts';
import { DEFAULT_ADDRESS } from '../../../core/config/schema.ts';
import type { Scheduler } from '../../../core/scheduler-host/scheduler.ts';
import { isLoopback } from '../../../core/util/hosts.ts';
import type { JournalOptions } from '../../app/journal.ts';
import { openScheduler } from '../../app/start-scheduler.ts';
import { durabilityOf } from '../../app/write-log.ts';
import { readDaskTlsConfig } from '../../dask/tls-config.ts';
import {
  namesCertificates,
  prepareCommand,
  type SchedulerCommand,
  type SchedulerFlags,
  statusOptionsOf,
  tuneEngine,
} from '../flags.ts';
import { type LogFlags, say, stderrLogger } from '../terminal.ts';
import { untilStopped, writePidFile } from '../with-client.ts';

/** `yardmaster scheduler`. Runs until it is stopped. */
export async function schedulerCommand(flags: SchedulerFlags): Promise<number> {
  tuneEngine();
  const log = stderrLogger(flags, 'scheduler');
  const command = prepareCommand(flags, log);
  const { config, pidFile, record, recordKeep, recordings } = flags;
  if (recordKeep !== undefined && record === undefined) {
    throw new YardmasterError('ERR_CONFIG', '--record-keep needs --record with a folder');
  }
  if (pidFile !== undefined) writePidFile(pidFile);
  const { layers } = command;
  const running = await openScheduler({
    log,
    layers,
    config,
    record,
    recordKeep,
    recordings,
    ...journalOf(flags),
  });
  const stopped = untilStopped(running);
  stopped.catch(() => undefined); // Awaited below, once it listens.
  let addresses: readonly string[];
  try {
    addresses = await listen(running.scheduler, command, log);
    await showDashboard(running.scheduler, flags, log);
  } catch (error) {
    // It may have been idle for too long before all addresses were open.
    if (YardmasterError.is(error, 'ERR_CLOSED')) return stopped;
    await running.close();
    throw error;
  }
  // Written last, because a script may send a signal as soon as it reads them.
  for (const address of addresses) say(`${address}\n`);
  return stopped;
}

/** @throws YardmasterError `ERR_CONFIG` when a flag needs another one */
function journalOf({ journal: folder, ...flags }: SchedulerFlags): { journal?: JournalOptions } {
  const { durability, onJournalError, journalWait } = flags;
  if (folder !== undefined) {
    const journal = {
      folder,
      ...(durability === undefined ? {} : { durability: durabilityOf(durability) }),
      ...(onJournalError === undefined ? {} : { onJournalError }),
      ...(journalWait === undefined ? {} : { workerWaitMs: journalWait }),
    };
    return { journal };
  }
  if ((durability ?? onJournalError ?? journalWait) !== undefined) {
    throw new YardmasterError(
      'ERR_CONFIG',
      '--durability, --on-journal-error and --journal-wait need --journal with a folder',
    );
  }
  return {};
}

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
async function listen(
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

/**
 * Serves the dashboard unless a flag says no. Its failure ends the scheduler only when a flag asks for it. The plugin
 * for Dask has its own, at the port to which Dask's clients link.
 * @throws Error when a flag asks for it, and it cannot be served
 */
async function showDashboard(
  scheduler: Scheduler,
  flags: SchedulerFlags,
  log: Logger,
): Promise<void> {
  const { dashboard, dashboardAddress } = flags;
  const names = new Set(scheduler.plugins.map(({ name }) => name));
  if (names.has('dashboard') && ((dashboard ?? true) !== true || dashboardAddress !== undefined)) {
    log.warn(
      {},
      'the configuration names the plugin "dashboard", so that its options count, and the flags for the dashboard do not',
    );
  }
  if (dashboard === false) return;
  try {
    if (!names.has('dashboard') && !names.has('dask')) await addDashboard(scheduler, flags);
    sayUrl(scheduler, flags, names.has('dask') ? 'dask.dashboard' : 'dashboard.url');
  } catch (error) {
    // It may have been idle for too long in the meantime.
    if (YardmasterError.is(error, 'ERR_CLOSED')) return;
    if (dashboard !== undefined || dashboardAddress !== undefined) throw error;
    log.warn({ err: error }, 'the dashboard could not be served');
  }
}

/** With its token, which is therefore not in the log that clients may read. Without a wish for less, it is always said. */
function sayUrl(scheduler: Scheduler, { logLevel, logFormat }: LogFlags, command: string): void {
  const url = scheduler.command(command);
  if (typeof url !== 'string') return;
  const level = logLevel === 'warn' ? 'info' : logLevel;
  stderrLogger({ logLevel: level, logFormat }, 'scheduler').info({ url }, `dashboard: ${url}`);
}

async function addDashboard(scheduler: Scheduler, flags: SchedulerFlags): Promise<void> {
  const { statusHost: host, statusPort: port } = statusOptionsOf(flags);
  const options = {
    host,
    port,
  };
  await scheduler.addPlugin('dashboard', { options });
}
