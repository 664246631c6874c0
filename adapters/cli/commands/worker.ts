import { resolve } from 'node:path';
import { type Clock, YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import type { WorkerEnd } from '../../../core/worker-host/worker-options.ts';
import { type ConfigInput, configuration } from '../../app/config.ts';
import { configuredTransports } from '../../app/start-scheduler.ts';
import {
  NannyPlugins,
  type RunningWorker,
  runWorker,
  sendable,
  type WorkerParts,
  type WorkerSettings,
} from '../../app/start-worker.ts';
import { SystemClock } from '../../clocks/index.ts';
import { type LastWords, Nanny, NannyLink } from '../../nanny/index.ts';
import { INSPECT_PORT, inspectArgument } from '../../nanny/worker-process.ts';
import { openChannelTo } from '../../peers/peers.ts';
import { AllowedModules } from '../../tasks/index.ts';
import { type CommonOptions, fromHere, run } from '../command-line.ts';
import { settingsFrom, WORKER_SETTINGS } from '../setting-flags.ts';
import { say, stderrLogger } from '../terminal.ts';
import { untilStopped } from '../with-client.ts';

export interface WorkerFlags extends CommonOptions {
  readonly config?: string;
  readonly name?: string;
  readonly host?: string;
  /** True: at Node's own port. */
  readonly inspect?: number | true;
  readonly codeRoot?: string;
  readonly spillFolder?: string;
}

const PROBE_MS = 2000;
/** Milliseconds by which the nanny may act later than the worker on a signal that both got. */
const GROUP_SIGNAL_MS = 500;

/** `yardmaster worker`. Runs until it is stopped, or the scheduler is gone. */
export async function workerCommand(scheduler: string, flags: WorkerFlags): Promise<number> {
  const settings = await workerSettings(scheduler, flags);
  limitEnvironment(settings.config.env);
  if (settings.config.nanny) return superviseWorker(settings, flags.inspect);
  if (flags.inspect !== undefined) await listenForDebugger(flags.inspect);
  const worker = await start(settings);
  const stopped = untilStopped({
    closed: worker.closed,
    close: async () => {
      await worker.retire(settings.config.retireTimeout);
      await worker.close();
    },
  });
  // Printed last, because a parent process that waits for this line may send a signal at once.
  say(`${worker.address}\n`);
  return stopped;
}

/**
 * The settings of the flags and of the configuration that they name.
 * @throws YardmasterError `ERR_CONFIG`
 */
export async function workerSettings(
  scheduler: string,
  flags: WorkerFlags,
): Promise<WorkerSettings> {
  const { name, host, codeRoot, spillFolder, logLevel, verbose, insecure } = flags;
  const given = settingsFrom(WORKER_SETTINGS, flags) as NonNullable<ConfigInput['worker']>;
  const memory = { ...given.memory, spillFolder };
  const allowModules = given.allowModules?.map(fromHere);
  const overrides = { worker: { ...given, memory, allowModules } };
  const { config, folder } =
    flags.config === undefined
      ? configuration.loadObject({}, process.cwd(), { overrides })
      : await configuration.loadFile(flags.config, { overrides });
  return {
    scheduler,
    config: config.worker,
    transport: config.scheduler.transport,
    ...{ folder, name, host, logLevel, verbose, insecure },
    codeRoot: codeRoot === undefined ? undefined : resolve(codeRoot),
    // A pipe is no terminal, so what would be text here would be JSON in a process of a nanny.
    logFormat: flags.logFormat ?? (process.stderr.isTTY ? 'text' : 'json'),
  };
}

/** This process looks after another one, which is the worker. */
async function superviseWorker(
  settings: WorkerSettings,
  inspect: WorkerFlags['inspect'],
): Promise<number> {
  const { config, folder, codeRoot, name = `worker of ${settings.scheduler}` } = settings;
  const { nannyPlugins, nannyPreload, allowModules } = config;
  let hasComeUp = false;
  const clock = new SystemClock();
  const log = stderrLogger(settings, `nanny of ${name}`);
  const plugins = await NannyPlugins.start({
    ...{ name, plugins: nannyPlugins, preload: nannyPreload, folder, clock, log },
    modules: AllowedModules.of(allowModules, folder, codeRoot),
  });
  const nanny = new Nanny({
    ...{ name, clock, log },
    settings: sendable(settings),
    nodeArgs:
      inspect === undefined ? process.execArgv : [...process.execArgv, inspectArgument(inspect)],
    hooks: plugins.hooks,
    plugins: plugins.remote,
    // A worker that stands at a breakpoint is not stuck.
    stuckAfterMs: inspect === undefined ? config.stuckAfter : Infinity,
    retireMs: config.retireTimeout,
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
      close: () => nanny.close(),
    });
  } finally {
    await plugins.close();
  }
  return nanny.error === undefined ? code : 1;
}

/** As `node --inspect` does, which says on the error stream where it listens. */
async function listenForDebugger(port: number | true): Promise<void> {
  const { open } = await import('node:inspector');
  open(port === true ? INSPECT_PORT : port, '127.0.0.1');
}

/** `yardmaster worker-process`: the process that a nanny looks after, which tells it what to do. */
export async function workerProcessCommand(): Promise<void> {
  const clock = new SystemClock();
  const link = new NannyLink(clock);
  const settings = (await link.settings) as WorkerSettings;
  await run(settings, () => runSupervised(settings, link, clock));
}

async function runSupervised(
  settings: WorkerSettings,
  link: NannyLink,
  clock: Clock,
): Promise<number> {
  limitEnvironment(settings.config.env);
  const worker = await start(settings, {
    nanny: `process ${process.ppid}`,
    nannyPlugins: link,
  });
  let restart: string | undefined;
  process.on('SIGTERM', () => {
    clock.setTimer(GROUP_SIGNAL_MS, () => {
      // A signal to the whole group of processes has reached the nanny, too, and the nanny says what is to be done.
      if (link.requested !== undefined) return;
      restart = 'it got SIGTERM';
      inBackground(worker.close(), 'the worker could not close in good order');
    });
  });
  link.registered(worker);
  const end = await worker.ended;
  const isEvicted = YardmasterError.is(end.error, 'ERR_CLOSED') && (await answers(settings));
  await link.ends(
    isEvicted
      ? { kind: 'restart', reason: end.reason }
      : lastWords(
          end,
          link.requested === 'restart' ? 'its nanny was asked to restart it' : restart,
        ),
  );
  return end.error === undefined ? 0 : 1;
}

/**
 * True when the scheduler takes connections: then it has only dropped this worker (which was silent for too long, or
 * whose connection broke), and is not gone.
 */
async function answers(settings: WorkerSettings): Promise<boolean> {
  const network = {
    clock: new SystemClock(),
    transports: await configuredTransports(settings),
    timeoutMs: PROBE_MS,
  };
  const ignored = {
    onMessage: () => undefined,
    onRequest: () => undefined,
    onClose: () => undefined,
  };
  try {
    const channel = await openChannelTo(settings.scheduler, 'worker', network, ignored);
    await channel.close();
    return true;
  } catch {
    return false;
  }
}

/** A signal to the process itself is for this process, not for the worker, which the nanny keeps. */
function lastWords({ reason, error, restart }: WorkerEnd, why: string | undefined): LastWords {
  if (error !== undefined) {
    const code = YardmasterError.is(error) ? error.code : 'ERR_INVARIANT';
    return { kind: 'failed', reason, code };
  }
  if (why !== undefined) return { kind: 'restart', reason: why };
  return { kind: restart === true ? 'restart' : 'done', reason };
}

async function start(
  settings: WorkerSettings,
  supervisor: Pick<WorkerParts, 'nanny' | 'nannyPlugins'> = {},
): Promise<RunningWorker> {
  const { scheduler, config, name, host, folder, codeRoot } = settings;
  return runWorker(scheduler, config, {
    ...{ name, host, folder, codeRoot, ...supervisor },
    transports: await configuredTransports(settings),
    log: stderrLogger(settings, name ?? 'worker'),
  });
}

/** The variables that Node, the system and Yardmaster itself need. */
const NEEDED =
  /^(?:PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|TMP|TEMP|SystemRoot|USERPROFILE|MALLOC_TRIM_THRESHOLD_|NODE_\w+|YARDMASTER_\w+)$/i;

/**
 * Removes all other variables from the environment of this process and of those that it starts: passwords of other
 * programs, say. Tasks run as the user of the worker, so what that user can read stays in their reach.
 * @param kept - names of further variables; undefined: nothing is removed
 */
function limitEnvironment(kept: readonly string[] | undefined): void {
  if (kept === undefined) return;
  for (const name of Object.keys(process.env)) {
    if (!kept.includes(name) && !NEEDED.test(name)) Reflect.deleteProperty(process.env, name);
  }
}
