import { type RunningScheduler, startScheduler } from '../app/start-scheduler.ts';
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
  const { config } = flags;
  const log = stderrLogger(flags, 'scheduler');
  const running = await startScheduler(
    { log, ...(config === undefined ? {} : { config }) },
    (configured) => addressOf(configured, flags),
  );
  const stopped = untilStopped(running);
  const daskAddress = flags.dask === true ? await listenForDask(running, flags) : undefined;
  // Only now, for whoever waits for these lines may send a signal at once.
  if (daskAddress !== undefined) process.stdout.write(`${daskAddress}\n`);
  process.stdout.write(`${running.address}\n`);
  return stopped;
}

/** The plugin is there already when the configuration names it; flags then change nothing. */
async function listenForDask(running: RunningScheduler, flags: SchedulerFlags): Promise<string> {
  const { scheduler } = running;
  const { host = '127.0.0.1', python } = flags;
  const shownHost = host.includes(':') ? `[${host}]` : host;
  try {
    await scheduler.addPlugin('dask', {
      idempotent: true,
      options: {
        address: `${daskSchemeOf(flags)}://${shownHost}:${daskPortOf(flags)}`,
        ...(python === undefined ? {} : { python }),
        tls: tlsFilesOf(flags),
      },
    });
  } catch (error) {
    await running.close();
    throw error;
  }
  return String(await scheduler.command('dask.address'));
}

/** Encrypted when certificates are named, or when Dask's configuration wants it so. */
function daskSchemeOf({ tlsCaFile, tlsCert, tlsKey }: SchedulerFlags): 'tcp' | 'tls' {
  const isNamed = [tlsCaFile, tlsCert, tlsKey].some((file) => file !== undefined);
  return isNamed || readDaskTlsConfig(process.env).requireEncryption ? 'tls' : 'tcp';
}

function tlsFilesOf({ tlsCaFile, tlsCert, tlsKey }: SchedulerFlags): Record<string, string> {
  return {
    ...(tlsCaFile === undefined ? {} : { caFile: tlsCaFile }),
    ...(tlsCert === undefined ? {} : { cert: tlsCert }),
    ...(tlsKey === undefined ? {} : { key: tlsKey }),
  };
}

function daskPortOf({ daskPort, port }: SchedulerFlags): number {
  return daskPort ?? (port === 0 ? 0 : DASK_PORT);
}

/** Flags win over the configuration, each for its part. */
function addressOf(configured: string, flags: SchedulerFlags): string {
  const { host, dask } = flags;
  const parts = /^(?<scheme>[^:]+):\/\/(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(
    configured,
  );
  if (parts?.groups === undefined) return configured;
  const { scheme, host: itsHost, port: itsPort } = parts.groups;
  const wantedHost = host === undefined ? itsHost : host.includes(':') ? `[${host}]` : host;
  const isTaken = dask === true && Number(itsPort) === daskPortOf(flags);
  const port = flags.port ?? (isTaken ? Number(itsPort) - 1 : (itsPort ?? 0));
  if (host === undefined && String(port) === itsPort) return configured;
  return `${scheme}://${wantedHost}:${port}`;
}
