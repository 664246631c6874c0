import type { Clock } from '../../core/api/index.ts';
import {
  checkConfig as checkBareConfig,
  createScheduler as createBareScheduler,
} from '../../core/scheduler-host/create-scheduler.ts';
import type { CreateSchedulerOptions, Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { builtins } from './builtin-extensions.ts';
import { SystemClock } from '../clocks/index.ts';
import { ForeignCallers } from './foreign-callers.ts';
import { textLogger } from './text-log.ts';
import { watchScheduler } from './watch-scheduler.ts';

/** What a scheduler is made of; all that is built in comes by itself. */
export type SchedulerOptions = Omit<CreateSchedulerOptions, 'builtins' | 'clock'> & {
  /** Default: real time. */
  readonly clock?: Clock;
};

/**
 * Makes a scheduler that knows what is built in. It does not listen yet.
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`, `ERR_PLUGIN_SETUP`, `ERR_SLOT`
 */
export async function createScheduler(options: SchedulerOptions = {}): Promise<Scheduler> {
  const { log = textLogger('scheduler'), clock = new SystemClock() } = options;
  const callers = new ForeignCallers(clock, log);
  const scheduler = await createBareScheduler({
    ...options,
    clock,
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
  return checkBareConfig({ clock: new SystemClock(), ...options, builtins });
}

/** A scheduler that runs. */
interface OpenScheduler {
  readonly scheduler: Scheduler;
  /** Resolves when it is closed; rejects when it crashed. */
  readonly closed: Promise<void>;
  /** The workers are about to leave, and then it closes: tasks without a worker are not warned of. */
  expectEnd(): void;
  close(): Promise<void>;
}

/** A scheduler that listens. */
export interface RunningScheduler extends OpenScheduler {
  /** With the real port. */
  readonly address: string;
}

/**
 * Starts a scheduler that does not listen: `scheduler.listen` opens its address.
 * @throws YardmasterError as {@link createScheduler}
 */
export async function openScheduler(options: SchedulerOptions = {}): Promise<OpenScheduler> {
  const log = options.log ?? textLogger('scheduler');
  const scheduler = await createScheduler({ ...options, log });
  const expectEnd = watchScheduler(scheduler, log);
  const closed = new Promise<void>((resolve, reject) => {
    scheduler.events.once('closed', () => {
      if (scheduler.crash === undefined) resolve();
      else reject(scheduler.crash);
    });
  });
  closed.catch(() => undefined); // Callers that await it receive the error.
  return { scheduler, closed, expectEnd, close: () => scheduler.close() };
}

/**
 * Starts a scheduler and listens.
 * @param address - default: of the configuration
 * @throws YardmasterError as {@link createScheduler}, and `ERR_CONNECT` when the address is taken
 */
export async function startScheduler(
  options: SchedulerOptions = {},
  address?: string | ((configured: string) => string),
): Promise<RunningScheduler> {
  const open = await openScheduler(options);
  const { scheduler } = open;
  try {
    const wanted =
      typeof address === 'function' ? address(scheduler.config.scheduler.address) : address;
    return { ...open, address: await scheduler.listen(wanted) };
  } catch (error) {
    await open.close();
    throw error;
  }
}
