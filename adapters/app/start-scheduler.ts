import type { Clock, Logger, RecordingInfo, Transport } from '../../core/api/index.ts';
import { IN_CODE } from '../../core/config/problems.ts';
import { resolverIn } from '../../core/plugin-host/module-files.ts';
import { loadTransport } from '../../core/plugin-host/load-extensions.ts';
import {
  checkConfig as checkBareConfig,
  createScheduler as createBareScheduler,
} from '../../core/scheduler-host/create-scheduler.ts';
import type { CreateSchedulerOptions, Scheduler } from '../../core/scheduler-host/scheduler.ts';
import {
  checkCall,
  CLOCK,
  either,
  FIELDS,
  FUNCTION,
  LIST,
  LOG,
  type Rules,
  TEXT,
} from '../../core/shared/schema.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { SystemClock } from '../clocks/index.ts';
import type { tcp } from '../peers/tcp.ts';
import type { ForeignCaller } from '../transports/tcp/index.ts';
import { builtins } from './builtin-extensions.ts';
import { type ConfigInput, configuration } from './config.ts';
import { Journal, type JournalOptions } from './journal.ts';
import { keepKnowledge } from './knowledge.ts';
import { Recorder, recordingKeepOf } from './recorder.ts';
import type { WorkerSettings } from './start-worker.ts';
import { textLogger } from './text-log.ts';
import { type SchedulerWatch, watchScheduler } from './watch-scheduler.ts';

/** The options of a scheduler; everything built in is added. */
export type SchedulerOptions = Omit<
  CreateSchedulerOptions,
  'builtins' | 'clock' | 'config' | 'configuration'
> & {
  /** The configuration, or the path of its file. Default: all defaults. */
  readonly config?: ConfigInput | string;
  /** Default: real time. */
  readonly clock?: Clock;
};

const SCHEDULER_RULES: Rules<SchedulerOptions> = {
  config: either(TEXT, FIELDS),
  configFile: TEXT,
  layers: FIELDS,
  clock: CLOCK,
  transports: LIST,
  fallbackTransports: LIST,
  log: LOG,
  provide: LIST,
  onCrash: FUNCTION,
};

/**
 * Makes a scheduler that knows what is built in. It does not listen yet.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: SchedulerOptions = {}): Promise<Scheduler> {
  checkCall('createScheduler', options, SCHEDULER_RULES);
  const { log = textLogger('scheduler'), clock = new SystemClock() } = options;
  const callers = new ForeignCallers(clock, log);
  const scheduler = await createBareScheduler({
    ...options,
    clock,
    configuration,
    builtins: { ...builtins, tcp: () => callers.tcp() },
  });
  callers.scheduler = scheduler;
  return scheduler;
}

/**
 * Loads a configuration and all that it names. Starts nothing.
 * @returns what it would start, as a tree for people
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_SLOT` with every problem
 */
export function checkConfig(options: SchedulerOptions): Promise<string> {
  return checkBareConfig({ clock: new SystemClock(), ...options, configuration, builtins });
}

export type OpenSchedulerOptions = SchedulerOptions & {
  /**
   * Path of a file for a recording of all that the kernel is handed. It must not exist yet; with a journal the next one is
   * numbered instead.
   */
  readonly record?: string;
  /** Keep only the latest part of that recording, which then is a folder: `2GB`, `24h`, or `2GB,24h`. Default: all. */
  readonly recordKeep?: string;
  /** Folder for recordings that clients begin and end (`client.record`). Default: they may not. */
  readonly recordings?: string;
  /**
   * Folder of a journal, or how to keep one: a scheduler that is started with it again continues where this one
   * ended. Default: none.
   */
  readonly journal?: string | JournalOptions;
};

interface OpenScheduler extends SchedulerWatch {
  readonly scheduler: Scheduler;
  /** Resolves when it is closed; rejects when it crashed. */
  readonly closed: Promise<void>;
  /**
   * Records all that the kernel is handed from here on, beginning with its state.
   * @param file - path of the recording; it must not exist yet
   * @throws YardmasterError `ERR_LOG`, `ERR_CLOSED`
   */
  record(file: string): Promise<RecordingInfo>;
  /** Ends the recording. @throws YardmasterError `ERR_LOG` when there is none, or when its end cannot be written */
  stopRecording(): Promise<RecordingInfo>;
  close(): Promise<void>;
}

/** A scheduler that listens. */
export interface RunningScheduler extends OpenScheduler {
  /** With the real port. */
  readonly address: string;
}

/**
 * Starts a scheduler that does not listen: `scheduler.listen` opens its address.
 * @throws YardmasterError as {@link createScheduler}; `ERR_CONFIG` when `recordKeep` is no limit; `ERR_LOG` when the recording cannot be made, `ERR_JOURNAL`
 */
export async function openScheduler({
  record,
  recordKeep,
  recordings,
  journal: journalOptions,
  ...options
}: OpenSchedulerOptions = {}): Promise<OpenScheduler> {
  const { log = textLogger('scheduler'), clock = new SystemClock() } = options;
  const recorder = new Recorder(log, recordings);
  const keep = recordKeep === undefined ? undefined : recordingKeepOf(recordKeep);
  let journal: Journal | undefined;
  let scheduler: Scheduler | undefined;
  try {
    while (scheduler === undefined) {
      if (record !== undefined) recorder.fromStart(record, keep, journalOptions !== undefined);
      journal ??= await openJournal(journalOptions, log, clock);
      const own = [...recorder.providers, ...(journal?.providers ?? [])];
      const provide = [...(options.provide ?? []), ...own];
      const next = await createScheduler({ ...options, clock, log, provide });
      if (await startJournal(journal, next)) scheduler = next;
      else recorder.discard();
    }
  } catch (error) {
    journal?.close();
    recorder.discard();
    throw error;
  }
  const endKnowledge = keepKnowledge(scheduler, clock, log);
  const watch = watchScheduler(scheduler);
  const closed = new Promise<void>((resolve) => {
    scheduler.events.once('closed', () => resolve());
  }).then(async () => {
    endKnowledge();
    await recorder.close();
    journal?.close();
    if (scheduler.crash !== undefined) throw scheduler.crash;
  });
  closed.catch(() => undefined); // Callers that await it receive the error.
  const close = async (): Promise<void> => {
    await scheduler.close();
    await closed.catch(() => undefined);
  };
  return {
    ...{ scheduler, closed, ...watch, close },
    record: (file) => recorder.startAt(file),
    stopRecording: () => recorder.stop(),
  };
}

async function openJournal(
  options: string | JournalOptions | undefined,
  log: Logger,
  clock: Clock,
): Promise<Journal | undefined> {
  if (options === undefined) return undefined;
  return Journal.open(typeof options === 'string' ? { folder: options } : options, log, clock);
}

/**
 * Before it listens: nothing else may happen to it first. Returns false when the scheduler has ended at an entry of the
 * journal without which another one is to start.
 */
async function startJournal(journal: Journal | undefined, scheduler: Scheduler): Promise<boolean> {
  try {
    await journal?.start(scheduler);
    return true;
  } catch (error) {
    await scheduler.close();
    if (journal?.leavesOut(error) === true) return false;
    throw error;
  }
}

/**
 * The transport that `scheduler.transport` of a worker's configuration names, if it names one.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function configuredTransports({
  transport,
  folder,
}: Pick<WorkerSettings, 'transport' | 'folder'>): Promise<readonly Transport[]> {
  if (transport === undefined) return [];
  const place = { origin: IN_CODE, optionsAt: ['scheduler', 'transport', 'options'] };
  const resolver = resolverIn(folder, builtins);
  return [await loadTransport(transport, resolver, place, new SystemClock())];
}

/**
 * The transport that a configuration file names, for peers that need nothing else of it.
 * @param file - undefined: none
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`
 */
export async function transportsOfFile(file: string | undefined): Promise<readonly Transport[]> {
  if (file === undefined) return [];
  const { config, folder } = await configuration.loadFile(file);
  return configuredTransports({ folder, transport: config.scheduler.transport });
}

/** Hosts that are remembered, so that each is warned of once. */
const HOSTS_MAX = 1000;

/**
 * Answers peers of Dask that connect to a TCP address of the scheduler's own protocol: they end with an
 * error that names the address for Dask, or says how to open one. Warns once for each host.
 */
export class ForeignCallers {
  /** Set once it is made; no caller comes before. */
  scheduler: Scheduler | undefined;
  private readonly hosts = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** The TCP transport, with this as the handler of foreign callers. */
  async tcp(): Promise<typeof tcp> {
    const { tcp: definition, tcpWithDask } = await import('../peers/tcp.ts');
    const answer = (caller: ForeignCaller): void => this.answer(caller);
    return {
      ...definition,
      create: ({ clock }, options) => tcpWithDask(clock, options, answer),
    };
  }

  private answer(caller: ForeignCaller): void {
    inBackground(this.refuse(caller), (error) => {
      const { peerAddress: peer } = caller;
      this.log.debug(
        { err: error, peer },
        `a caller that is not ours was closed: ${error.message}`,
      );
    });
  }

  private async refuse({ socket, peerAddress: peer }: ForeignCaller): Promise<void> {
    const { refuseDaskPeer } = await import('../dask/wire/wrong-port.ts');
    await refuseDaskPeer(socket, this.clock, async (called) => {
      const advice = await this.advice();
      if (this.isNewHost(peer)) {
        const text = `a worker or client of Dask (${peer}) connected to ${called}, where the scheduler listens for workers and clients of Yardmaster; ${advice}`;
        this.log.warn({ peer, address: called }, text);
      }
      return `${called} is where the scheduler listens for workers and clients of Yardmaster, not for those of Dask; ${advice}`;
    });
  }

  private async advice(): Promise<string> {
    const { scheduler } = this;
    if (scheduler?.plugins.some(({ name }) => name === 'dask') === true) {
      return `those of Dask connect to ${String(await scheduler.command('dask.address'))}`;
    }
    return 'it has no address for Dask: start it with `yardmaster scheduler --dask`, or add the plugin "dask" to its configuration';
  }

  private isNewHost(peer: string): boolean {
    const host = peer.replace(/:\d+$/, '');
    if (this.hosts.has(host) || this.hosts.size >= HOSTS_MAX) return false;
    this.hosts.add(host);
    return true;
  }
}
