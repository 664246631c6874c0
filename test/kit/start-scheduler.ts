import {
  openScheduler,
  type OpenSchedulerOptions,
  type RunningScheduler,
} from '../../adapters/app/start-scheduler.ts';

/** Starts a scheduler that listens. @param address - default: of the configuration */
export async function startScheduler(
  options: OpenSchedulerOptions = {},
  address?: string,
): Promise<RunningScheduler> {
  const open = await openScheduler(options);
  try {
    return { ...open, address: await open.scheduler.listen(address) };
  } catch (error) {
    await open.close();
    throw error;
  }
}
