import { resolve } from 'node:path';
import { AllowedModules } from '../../tasks/index.ts';
import { NannyPlugins, type WorkerSettings } from '../../app/start-worker.ts';
import { SystemClock } from '../../clocks/index.ts';
import { Nanny } from '../../nanny/index.ts';
import { type LogFlags, say, stderrLogger } from '../terminal.ts';
import { fromHere, type WorkerFlags } from '../flags.ts';
import { inspectArgument } from '../../nanny/worker-process.ts';
import { untilStopped } from '../with-client.ts';

/** `yardmaster worker` with a nanny: this process looks after another one, which is the worker. */
export async function nannyCommand(
  scheduler: string,
  flags: WorkerFlags & LogFlags,
  { worker, folder }: WorkerSettings,
): Promise<number> {
  const { stuckAfter, retireTimeout, nannyPlugins = [], nannyPreload = [] } = worker;
  const { name = `worker of ${scheduler}` } = flags;
  // A pipe is no terminal, so what would be text here would be JSON there.
  const format = flags.logFormat ?? (process.stderr.isTTY ? 'text' : 'json');
  let hasComeUp = false;
  const clock = new SystemClock();
  const log = stderrLogger(flags, `nanny of ${name}`);
  const plugins = await NannyPlugins.start({
    ...{ name, plugins: nannyPlugins, preload: nannyPreload, folder, clock, log },
    modules: AllowedModules.of(
      flags.allowModules?.map(fromHere) ?? worker.allowModules,
      folder,
      flags.codeRoot === undefined ? undefined : resolve(flags.codeRoot),
    ),
  });
  const { inspect } = flags;
  const nanny = new Nanny({
    name,
    args: [...process.argv.slice(2), '--log-format', format],
    nodeArgs:
      inspect === undefined ? process.execArgv : [...process.execArgv, inspectArgument(inspect)],
    clock,
    log,
    hooks: plugins.hooks,
    plugins: plugins.remote,
    stuckAfterMs: stuckAfter,
    // A worker that stands at a breakpoint is not stuck.
    ...(inspect === undefined ? {} : { stuckAfterMs: Infinity }),
    onStderr: (text) => void process.stderr.write(text),
    onRegistered: (address) => {
      if (!hasComeUp) say(`${address}\n`);
      hasComeUp = true;
    },
  });
  plugins.serve(nanny);
  let code;
  try {
    code = await untilStopped({
      closed: nanny.ended.then(() => {
        // What a worker wrote that did not come up is on the error stream already.
        if (nanny.error !== undefined && hasComeUp) throw nanny.error;
      }),
      close: () => nanny.close(retireTimeout),
    });
  } finally {
    await plugins.close();
  }
  return nanny.error === undefined ? code : 1;
}
