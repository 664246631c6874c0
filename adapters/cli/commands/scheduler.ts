import { YardmasterError } from '../../../core/api/index.ts';
import type { JournalOptions } from '../../app/journal.ts';
import { durabilityOf } from '../../app/write-log.ts';
import { openScheduler } from '../../app/start-scheduler.ts';
import { prepareCommand, type SchedulerFlags, tuneEngine } from '../flags.ts';
import { say, stderrLogger } from '../terminal.ts';
import { untilStopped, writePidFile } from '../with-client.ts';
import { showDashboard } from '../show-dashboard.ts';
import { listen } from '../scheduler-addresses.ts';

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
  if (durability ?? onJournalError ?? journalWait) {
    throw new YardmasterError(
      'ERR_CONFIG',
      '--durability, --on-journal-error and --journal-wait need --journal with a folder',
    );
  }
  return {};
}
