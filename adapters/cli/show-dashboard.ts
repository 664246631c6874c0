import { type Logger, YardmasterError } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { type SchedulerFlags, statusOptionsOf } from './flags.ts';

/**
 * Serves the dashboard unless a flag says no. Its failure ends the scheduler only when a flag asks for it. The plugin
 * for Dask has its own, at the port to which Dask's clients link.
 * @throws Error when a flag asks for it, and it cannot be served
 */
export async function showDashboard(
  scheduler: Scheduler,
  flags: SchedulerFlags,
  log: Logger,
): Promise<void> {
  const { dashboard, dashboardAddress } = flags;
  const names = new Set(scheduler.plugins.map(({ name }) => name));
  if (dashboard === false) return;
  try {
    if (!names.has('dashboard') && !names.has('dask')) await addDashboard(scheduler, flags);
    logUrl(scheduler, log, names.has('dask') ? 'dask.dashboard' : 'dashboard.url');
  } catch (error) {
    // It may have been idle for too long in the meantime.
    if (YardmasterError.is(error, 'ERR_CLOSED')) return;
    if (dashboard !== undefined || dashboardAddress !== undefined) throw error;
    log.warn({ err: error }, 'the dashboard could not be served');
  }
}

/** With its token, which is therefore not in the log that clients may read. */
function logUrl(scheduler: Scheduler, log: Logger, command: string): void {
  const url = scheduler.command(command);
  if (typeof url === 'string') log.info({ url }, `dashboard: ${url}`);
}

async function addDashboard(scheduler: Scheduler, flags: SchedulerFlags): Promise<void> {
  const { statusHost: host, statusPort: port } = statusOptionsOf(flags);
  const options = {
    host,
    port,
  };
  await scheduler.addPlugin('dashboard', { options });
}
