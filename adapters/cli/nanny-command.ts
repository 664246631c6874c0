import type { WorkerConfig } from '../../core/config/types.ts';
import { SystemClock } from '../clock/index.ts';
import { Nanny } from '../nanny/index.ts';
import { type LogFlags, stderrLogger } from './logger.ts';
import type { WorkerFlags } from './main.ts';
import { untilStopped } from './until-stopped.ts';

/** `yardmaster worker` with a nanny: this process looks after another one, which is the worker. */
export async function nannyCommand(
  scheduler: string,
  flags: WorkerFlags & LogFlags,
  { stuckAfter, retireTimeout }: Partial<WorkerConfig>,
): Promise<number> {
  const { name = `worker of ${scheduler}` } = flags;
  // A pipe is no terminal, so what would be text here would be JSON there.
  const format = flags.logFormat ?? (process.stderr.isTTY ? 'text' : 'json');
  let hasComeUp = false;
  const nanny = new Nanny({
    name,
    args: [...process.argv.slice(2), '--log-format', format],
    nodeArgs: process.execArgv,
    clock: new SystemClock(),
    log: stderrLogger(flags, `nanny of ${name}`),
    ...(stuckAfter === undefined ? {} : { stuckAfterMs: stuckAfter }),
    onStderr: (text) => void process.stderr.write(text),
    onRegistered: (address) => {
      if (!hasComeUp) process.stdout.write(`${address}\n`);
      hasComeUp = true;
    },
  });
  const code = await untilStopped({
    closed: nanny.ended.then(() => {
      // What a worker wrote that did not come up is on the error stream already.
      if (nanny.error !== undefined && hasComeUp) throw nanny.error;
    }),
    close: () => nanny.close(retireTimeout),
  });
  return nanny.error === undefined ? code : 1;
}
