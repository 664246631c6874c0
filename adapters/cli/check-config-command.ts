import { checkConfig } from '../app/start-scheduler.ts';
import { stderrLogger } from './logger.ts';

/** `yardmaster check-config`. Prints what the configuration would start. */
export async function checkConfigCommand(
  file: string,
  { logLevel }: { readonly logLevel: string },
): Promise<number> {
  const log = stderrLogger(logLevel, 'check-config');
  const report = await checkConfig({ config: file, log });
  process.stdout.write(`${file} is fine. It would start:\n${report}\n`);
  return 0;
}
