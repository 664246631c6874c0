import {
  AMOUNTS,
  ANY,
  BYTES,
  CLOCK,
  DURATION,
  either,
  FIELDS,
  FLAG,
  LIST,
  LOG,
  objectWith,
  oneOf,
  type OptionRules,
  TEXT,
  wholeNumber,
} from '../../core/shared/call-options.ts';
import type { Clock, Executor, Logger, Transport, UseEntry } from '../../core/api/index.ts';
import type { WorkerMemoryConfig } from '../../core/config/types.ts';
import type { LocalPluginInput } from '../../core/plugin-host/local-plugins.ts';
import type { OnSchedulerLost } from '../../core/shared/reconnect.ts';
import type { WorkerHostOptions } from '../../core/worker-host/create-worker.ts';
import type { CertificateFiles } from '../transports/tls/index.ts';
import type { Lifetime } from './lifetime.ts';

/** How to start a worker. Everything has a default. */
export interface StartWorkerOptions {
  /** Default: its address. */
  readonly name?: string;
  /** Tasks at once. Default: the number of processors; 1 for `inline`. */
  readonly threads?: number;
  /**
   * Where tasks run: in threads, in the thread of the worker, or in an executor of your own, which says
   * how many tasks it takes at once. The worker closes it. Default `threads`.
   */
  readonly executor?: 'threads' | 'inline' | Executor;
  readonly resources?: Readonly<Record<string, number>>;
  /**
   * What runs first of the tasks that are ready: `priority`, as the scheduler says, or `lifo`, what
   * became ready last. Default `priority`.
   */
  readonly ready?: 'priority' | 'lifo';
  /** Bytes; 0: unlimited. Default 0. */
  readonly memoryLimitBytes?: number;
  /** How it keeps that limit. */
  readonly memory?: Partial<WorkerMemoryConfig>;
  /**
   * Milliseconds that an aborted task may continue before its thread is terminated and replaced;
   * Infinity: without limit. For `threads`. Default 5000.
   */
  readonly killGraceMs?: number;
  /**
   * The host under which others reach it. Default: the address by which it reaches its scheduler, which is
   * 127.0.0.1 on the machine of the scheduler; `local` in memory.
   */
  readonly host?: string;
  /** Name of what starts another worker in its place when it restarts. Default: nothing does. */
  readonly nanny?: string;
  /** The plugins of its nanny, which clients can register. Default: it has none. */
  readonly nannyPlugins?: WorkerHostOptions['nannyPlugins'];
  /** Addresses of other services of its process by name, for `client.identity()`. Default none. */
  readonly services?: Readonly<Record<string, string>>;
  /** Further properties for `client.identity()`; plain data. Default none. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Shares its process with other workers: what it holds counts as its memory. Default false. */
  readonly isGuest?: boolean;
  /**
   * Path of the access file, for a scheduler at `tls://…`. Default: `YARDMASTER_ACCESS`, else what the
   * scheduler left on this machine.
   */
  readonly access?: string;
  /** Paths of certificates of one's own (PEM) in the place of an access file. */
  readonly tls?: CertificateFiles;
  /** Ways to reach others besides `tcp` and `tls`. */
  readonly transports?: readonly Transport[];
  readonly clock?: Clock;
  /** Default: warnings and errors on the error stream. */
  readonly log?: Logger;
  /** Plugins that are set up before its first task. Default none. */
  readonly plugins?: readonly LocalPluginInput[];
  /** Modules that are loaded before anything else. Default none. */
  readonly preload?: readonly UseEntry[];
  /** What the paths of both are relative to. Default: the current folder. */
  readonly folder?: string;
  /**
   * Where the modules may be that clients name, of tasks and plugins: folders and files, which start with `.` or `/`,
   * or packages; `*` permits every file. Default: the project of the current folder. `isGuest`: everywhere.
   */
  readonly allowModules?: readonly string[];
  /**
   * The project in which modules of tasks are looked for that clients name relative to theirs. Default: the project of
   * the current folder (the nearest folder with a `package.json`).
   */
  readonly codeRoot?: string;
  /** Replaces collaborators of the worker (`yardmaster/worker-host`). Default none. */
  readonly provide?: WorkerHostOptions['provide'];
  /** After which it retires and closes. Default: none. */
  readonly lifetime?: Lifetime;
  /** When the scheduler is gone: say so and close, or try to come back. Default `close`. */
  readonly onSchedulerLost?: OnSchedulerLost;
  /** Milliseconds for coming back; Infinity: for ever. Default 60 000. */
  readonly reconnectTimeoutMs?: number;
  /** Milliseconds without an answer after which the scheduler counts as gone; Infinity: never. Default 300 000. */
  readonly schedulerTtlMs?: number;
  /** Checks every invariant after each event; slow, for tests. Default false. */
  readonly validate?: boolean;
}

/** What each option of `startWorker` has to be. */
export const WORKER_RULES: OptionRules<StartWorkerOptions> = {
  name: TEXT,
  threads: wholeNumber(1),
  executor: either(oneOf('threads', 'inline'), objectWith('run')),
  resources: AMOUNTS,
  ready: oneOf('priority', 'lifo'),
  memoryLimitBytes: BYTES,
  memory: FIELDS,
  killGraceMs: DURATION,
  host: TEXT,
  nanny: TEXT,
  nannyPlugins: ANY,
  services: FIELDS,
  extra: FIELDS,
  isGuest: FLAG,
  access: TEXT,
  tls: FIELDS,
  transports: LIST,
  clock: CLOCK,
  log: LOG,
  plugins: LIST,
  preload: LIST,
  folder: TEXT,
  allowModules: LIST,
  codeRoot: TEXT,
  provide: LIST,
  lifetime: FIELDS,
  onSchedulerLost: oneOf('close', 'reconnect'),
  reconnectTimeoutMs: DURATION,
  schedulerTtlMs: DURATION,
  validate: FLAG,
};
