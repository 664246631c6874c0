import { startScheduler } from '../app/start-scheduler.ts';
import { tuneEngine } from './engine-flags.ts';
import { type LogFlags, stderrLogger } from './logger.ts';
import { untilStopped } from './until-stopped.ts';

/** Flags of `scheduler`. */
export interface SchedulerFlags extends LogFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: number;
}

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
  // Only now, for whoever waits for this line may send a signal at once.
  process.stdout.write(`${running.address}\n`);
  return stopped;
}

/** Flags win over the configuration, each for its part. */
function addressOf(configured: string, { host, port }: SchedulerFlags): string {
  const parts = /^(?<scheme>[^:]+):\/\/(?<host>\[[^\]]*\]|[^:]*)(?::(?<port>\d+))?$/.exec(
    configured,
  );
  if (parts?.groups === undefined || (host === undefined && port === undefined)) return configured;
  const { scheme, host: itsHost, port: itsPort } = parts.groups;
  const wantedHost = host === undefined ? itsHost : host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${wantedHost}:${port ?? itsPort ?? 0}`;
}
