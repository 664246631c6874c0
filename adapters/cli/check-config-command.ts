import { checkConfig } from '../app/start-scheduler.ts';
import { type LogFlags, stderrLogger } from './logger.ts';

/** `yardmaster check-config`. Prints what the configuration would start. */
export async function checkConfigCommand(file: string, flags: LogFlags): Promise<number> {
  const log = stderrLogger(flags, 'check-config');
  const report = await checkConfig({ config: file, log });
  process.stdout.write(`${file} is fine. It would start:\n${report}\n`);
  return 0;
}
