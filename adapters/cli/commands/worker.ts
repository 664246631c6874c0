import { resolve } from 'node:path';
import { loadConfigFile, loadConfigObject } from '../../../core/config/load.ts';
import type { WorkerMemoryConfig } from '../../../core/config/types.ts';
import type { WorkerEnd } from '../../../core/worker-host/worker-options.ts';
import { configuredTransports } from '../../app/start-scheduler.ts';
import { YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import {
  readSettings,
  type RunningWorker,
  settingsOf,
  startWorker,
  type WorkerSettings,
} from '../../app/start-worker.ts';
import { SystemClock } from '../../clocks/index.ts';
import { openChannelTo } from '../../peers/peers.ts';
import { type LastWords, NannyLink } from '../../nanny/index.ts';
import { type LogFlags, say, stderrLogger } from '../terminal.ts';
import { fromHere, limitEnvironment, type WorkerFlags } from '../flags.ts';
import { INSPECT_PORT } from '../../nanny/worker-process.ts';
import { nannyCommand } from './nanny.ts';
import { untilStopped } from '../with-client.ts';

const RETIRE_MS = 10_000;
const PROBE_MS = 2000;
/** How much later than the worker the nanny may act on a signal that both got, in milliseconds. */
const GROUP_SIGNAL_MS = 500;

/** `yardmaster worker`. Runs until it is stopped, or the scheduler is gone. */
export async function workerCommand(
  scheduler: string,
  flags: WorkerFlags & LogFlags,
): Promise<number> {
  // The reader of its output may go before the worker does, which shall end in good order all the same.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const settings = await settingsFrom(flags);
  limitEnvironment(flags.env ?? settings.worker.env);
  const { nanny = true, retireTimeout = RETIRE_MS } = { ...settings.worker, ...flags };
  if (flags.supervised === true) return supervisedCommand(scheduler, flags, settings);
  if (nanny) return nannyCommand(scheduler, flags, settings);
  if (flags.inspect !== undefined) await listenForDebugger(flags.inspect);
  const worker = await start(scheduler, flags, settings);
  const stopped = untilStopped({
    closed: worker.closed,
    close: async () => {
      await worker.retire(retireTimeout);
      await worker.close();
    },
  });
  // Printed last, because a parent process that waits for this line may send a signal at once.
  say(`${worker.address}\n`);
  return stopped;
}

/** As `node --inspect` does, which says on the error stream where it listens. */
async function listenForDebugger(port: number | true): Promise<void> {
  const { open } = await import('node:inspector');
  open(port === true ? INSPECT_PORT : port, '127.0.0.1');
}

async function settingsFrom({ config, settings }: WorkerFlags): Promise<WorkerSettings> {
  if (settings !== undefined) return readSettings(settings);
  if (config === undefined) return { worker: {}, folder: process.cwd() };
  const loaded = await loadConfigFile(config);
  const { worker, scheduler } = loaded.config;
  return { worker, folder: loaded.folder, transport: scheduler.transport };
}

/** The process that a nanny looks after. */
async function supervisedCommand(
  scheduler: string,
  flags: WorkerFlags & LogFlags,
  settings: WorkerSettings,
): Promise<number> {
  const clock = new SystemClock();
  const link = new NannyLink(clock);
  const worker = await start(scheduler, flags, settings, link);
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
  const isEvicted =
    YardmasterError.is(end.error, 'ERR_CLOSED') && (await answers(scheduler, settings));
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
 * Whether the scheduler takes connections: then it has only dropped this worker (which was silent for too long, or
 * whose connection broke), and is not gone.
 */
async function answers(scheduler: string, settings: WorkerSettings): Promise<boolean> {
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
    const channel = await openChannelTo(scheduler, 'worker', network, ignored);
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
  scheduler: string,
  flags: WorkerFlags & LogFlags,
  settings: WorkerSettings,
  nannyPlugins?: NannyLink,
): Promise<RunningWorker> {
  const { name, host } = flags;
  const { worker: configured } = settings;
  const { threads, resources, memoryLimit, ready, killGrace } = { ...configured, ...flags };
  const memory = { ...configured.memory, ...memoryOf(flags) };
  return startWorker(scheduler, {
    ...settingsOf(settings),
    transports: await configuredTransports(settings),
    memory,
    ...(flags.allowModules === undefined ? {} : { allowModules: flags.allowModules.map(fromHere) }),
    ...(flags.codeRoot === undefined ? {} : { codeRoot: resolve(flags.codeRoot) }),
    log: stderrLogger(flags, name ?? 'worker'),
    ...(threads === undefined ? {} : { threads }),
    ...(name === undefined ? {} : { name }),
    ...(flags.supervised === true ? { nanny: `process ${process.ppid}` } : {}),
    ...(nannyPlugins === undefined ? {} : { nannyPlugins }),
    ...(resources === undefined ? {} : { resources }),
    ...(ready === undefined ? {} : { ready }),
    ...(host === undefined ? {} : { host }),
    ...(memoryLimit === undefined ? {} : { memoryLimitBytes: memoryLimit }),
    ...(killGrace === undefined ? {} : { killGraceMs: killGrace }),
  });
}

/** What the flags say, checked like a configuration, and nothing else. */
function memoryOf({ memory = {}, spillFolder }: WorkerFlags): Partial<WorkerMemoryConfig> {
  const given = { ...memory, ...(spillFolder === undefined ? {} : { spillFolder }) };
  const checked = loadConfigObject({ worker: { memory: given } }).config.worker.memory;
  return Object.fromEntries(Object.entries(checked).filter(([name]) => name in given));
}
