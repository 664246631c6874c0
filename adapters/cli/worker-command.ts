import { loadConfigFile } from '../../core/config/load.ts';
import type { WorkerConfig } from '../../core/config/types.ts';
import { startWorker } from '../app/start-worker.ts';
import { type LogFlags, stderrLogger } from './logger.ts';
import type { WorkerFlags } from './main.ts';
import { untilStopped } from './until-stopped.ts';

/** `yardmaster worker`. Runs until it is stopped, or the scheduler is gone. */
export async function workerCommand(
  scheduler: string,
  flags: WorkerFlags & LogFlags,
): Promise<number> {
  const { name, host } = flags;
  const configured: Partial<WorkerConfig> =
    flags.config === undefined ? {} : (await loadConfigFile(flags.config)).config.worker;
  const { threads, resources, memoryLimit, ready } = { ...configured, ...flags };
  const worker = await startWorker(scheduler, {
    log: stderrLogger(flags, name ?? 'worker'),
    ...(threads === undefined ? {} : { threads }),
    ...(name === undefined ? {} : { name }),
    ...(resources === undefined ? {} : { resources }),
    ...(ready === undefined ? {} : { ready }),
    ...(host === undefined ? {} : { host }),
    ...(memoryLimit === undefined ? {} : { memoryLimitBytes: memoryLimit }),
  });
  const stopped = untilStopped(worker);
  // Only now, for whoever waits for this line may send a signal at once.
  process.stdout.write(`${worker.address}\n`);
  return stopped;
}
