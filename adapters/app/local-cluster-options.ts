import type { Clock, Logger, TransportInput } from '../../core/api/index.ts';
import {
  CLOCK,
  DURATION,
  either,
  FIELDS,
  FLAG,
  FUNCTION,
  LIST,
  LOG,
  oneOf,
  type Rules,
  TEXT,
  wholeNumber,
} from '../../core/shared/schema.ts';
import { type OptionsOf, rulesOf } from '../../core/shared/settings.ts';
import { WORKER_SCHEMA } from '../../core/config/schema.ts';
import type { CreateSchedulerOptions } from '../../core/scheduler-host/scheduler.ts';
import type { JournalOptions } from './journal.ts';
import type { AdaptOptions } from './adaptive.ts';
import type { ConfigInput } from './config.ts';

/** The place of the workers of a local cluster. */
export type ClusterMode =
  /** Tasks run in this very thread. For tests: nothing starts, nothing is parallel. */
  | 'inline'
  /** Tasks run in threads of this process. */
  | 'threads'
  /** Each worker is a separate process, reached over TCP. */
  | 'processes';

/**
 * The options of a local cluster, with settings of its workers as the section `worker` of a configuration has them. Everything
 * has a default.
 */
export interface LocalClusterOptions extends OptionsOf<typeof WORKER_SCHEMA> {
  /** Default 2; with `adapt` its minimum. */
  readonly workers?: number;
  /** Start and retire workers as the work demands: see `LocalCluster.adapt`. */
  readonly adapt?: AdaptOptions;
  /** Default `threads`. */
  readonly mode?: ClusterMode;
  /** Of scheduler and workers: an object, or the path of a file. */
  readonly config?: ConfigInput | string;
  /**
   * For `processes`: arguments of Node for each worker, such as `--max-old-space-size=8192`. Default: those of this process that
   * say how modules are loaded (`--import`, `--require`, `--loader`, `--conditions`), so that workers load what it loads.
   */
  readonly execArgv?: readonly string[];
  /**
   * For `processes`: gets what workers write to their error streams. Default: it goes to that of this process, from when the
   * worker is there.
   */
  readonly onStderr?: (text: string) => void;
  /**
   * For `processes`: a debugger can attach to each worker, on this machine, at this port and the ones that follow; `true`
   * or 0: at any free ports. The error stream says where. Default: none.
   */
  readonly inspect?: boolean | number;
  /**
   * The project of the modules of tasks, for clients of the cluster and for its workers: see `ConnectOptions`. Workers in
   * processes load modules from it alone, unless `worker.allowModules` of the configuration says otherwise.
   */
  readonly codeRoot?: string;
  /** Replaces parts of the scheduler (`tokens` of `yardmaster/plugin`), as `createScheduler` does. Default none. */
  readonly provide?: CreateSchedulerOptions['provide'];
  /** Path of a file for a recording of all that happens to the scheduler, for `yardmaster replay`. */
  readonly record?: string;
  /** Keep only the latest part of that recording, which then is a folder: `2GB`, `24h`, or `2GB,24h`. Default: all. */
  readonly recordKeep?: string;
  /** Folder for recordings that clients begin and end (`client.record`). Default: they may not. */
  readonly recordings?: string;
  /** Folder of a journal, from which the scheduler continues when it is started again; or how to keep one. */
  readonly journal?: string | JournalOptions;
  /** Connects scheduler, workers and clients, in the place of `scheduler.transport`. Default: in memory, and TCP for `processes`. */
  readonly transport?: TransportInput;
  /**
   * Serves the dashboard on this machine: `true`, or its options, such as `{ port: 9000 }`. Default: none, unless the
   * configuration has the plugin `dashboard`. `LocalCluster.dashboardUrl` is its address.
   */
  readonly dashboard?: boolean | Readonly<Record<string, unknown>>;
  readonly clock?: Clock;
  /** Default: warnings and errors on the error stream. */
  readonly log?: Logger;
  /** Milliseconds for all workers to be there. Default 30 000. */
  readonly timeoutMs?: number;
}

/** The rule of each option, also for a cluster in virtual time. */
export const CLUSTER_RULES: Rules<
  Omit<LocalClusterOptions, 'clock' | 'mode' | 'execArgv' | 'inspect' | 'onStderr'>
> = {
  ...rulesOf(WORKER_SCHEMA),
  workers: wholeNumber(0),
  adapt: FIELDS,
  config: either(TEXT, FIELDS),
  codeRoot: TEXT,
  provide: LIST,
  record: TEXT,
  recordKeep: TEXT,
  recordings: TEXT,
  journal: either(TEXT, FIELDS),
  transport: { extension: true },
  dashboard: either(FLAG, FIELDS),
  log: LOG,
  timeoutMs: DURATION,
};

export const LOCAL_CLUSTER_RULES: Rules<LocalClusterOptions> = {
  ...CLUSTER_RULES,
  mode: oneOf('inline', 'threads', 'processes'),
  execArgv: LIST,
  onStderr: FUNCTION,
  inspect: either(FLAG, wholeNumber(0)),
  clock: CLOCK,
};
