import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { type Clock, YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { SystemClock } from '../../clocks/index.ts';
import { reachOf } from '../../peers/task-reach.ts';
import { AllowedModules, type ClusterReach, type TaskSurroundings } from '../../tasks/index.ts';
import { type TunnelRequest, TunnelTransport } from '../../transports/tunnel.ts';
import type { FromThread, ThreadData } from './messages.ts';
import type { Job } from './task-thread.ts';

/** The settings of a thread. */
export interface SpawnSettings {
  /** Megabytes of the heap of each thread; undefined: Node's default. */
  readonly heapLimitMb: number | undefined;
  /** Bytes that its tasks may leave behind; undefined: the engine does as it likes. */
  readonly tidyBytes: number | undefined;
  /** The cluster that its tasks reach; undefined: none. */
  readonly cluster: ClusterReach | undefined;
}

/** Threads of this process that have not ended. */
const open = new Set<Worker>();

/** Milliseconds for threads to end before the process is killed. */
const EXIT_MS = 1000;

/**
 * Ends this process as soon as its threads have ended, which takes a moment. `process.exit` would wait for a thread that is
 * inside native code (`spawnSync`, say), which nothing can end: then the process is killed, and its exit code is lost.
 */
export function exitProcess(code: number): void {
  if (open.size === 0) process.exit(code);
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_MS);
  const ended = Promise.all([...open].map((thread) => thread.terminate()));
  inBackground(
    ended.then(() => process.exit(code)),
    'the threads could not be ended',
  );
}

/**
 * Starts a thread that runs `thread-main.ts`.
 * @param begun - of `StartedRuns`, when it runs tasks
 */
export function spawnThread(
  name: string,
  { heapLimitMb, tidyBytes, cluster }: SpawnSettings,
  begun?: SharedArrayBuffer,
): Worker {
  const workerData: ThreadData = {
    ...(begun && { begun }),
    ...(tidyBytes === undefined ? {} : { tidyBytes }),
    ...(cluster && {
      cluster: {
        scheduler: cluster.scheduler,
        schemes: cluster.transports.map(({ scheme }) => scheme),
        reconnect: cluster.reconnect,
        resultStore: cluster.resultStore,
        ...(cluster.modules === undefined
          ? {}
          : { moduleFolders: cluster.modules.folders, codeRoot: cluster.modules.codeRoot }),
      },
    }),
  };
  const thread = new Worker(threadEntry(), {
    name,
    workerData,
    ...(heapLimitMb === undefined
      ? {}
      : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
  });
  open.add(thread);
  thread.once('exit', () => open.delete(thread));
  return thread;
}

/** Resolves when a thread has started, or ends before. */
export function started(thread: Worker): Promise<void> {
  return new Promise((resolve) => {
    const listen = ({ op }: FromThread): void => {
      if (op !== 'ready') return;
      thread.off('message', listen);
      resolve();
    };
    thread.on('message', listen);
    thread.once('exit', () => resolve());
  });
}

/**
 * Path of what threads run: that of this package, compiled, also when this file runs uncompiled. Where a bundler has
 * made this code a part of another file, its `thread-main` next to that.
 * @throws YardmasterError `ERR_CONFIG` when there is neither
 */
export function threadEntry(): string {
  try {
    return createRequire(import.meta.url).resolve('#thread-main');
  } catch {
    const names = ['./thread-main.js', './thread-main.mjs'];
    const paths = names.map((name) => fileURLToPath(new URL(name, import.meta.url)));
    const found = paths.find((path) => existsSync(path));
    if (found !== undefined) return found;
    throw new YardmasterError(
      'ERR_CONFIG',
      `threads run ${paths[0]}, which does not exist: give the bundler node_modules/yardmaster/dist/bundle/thread-main.js as a second entry of this name, or leave yardmaster out of the bundle`,
      { path: paths[0] },
    );
  }
}

/** The settings that a thread `T` gets from its pool. */
export interface ThreadSettings<T> {
  readonly clock: Clock;
  /** Megabytes of the heap of each thread; undefined: Node's default. */
  readonly heapLimitMb: number | undefined;
  /** Bytes that its tasks may leave behind; undefined: the engine does as it likes. */
  readonly tidyBytes: number | undefined;
  /** Milliseconds for an aborted task to end. */
  readonly killGraceMs: number;
  /** The cluster that its tasks reach; undefined: none. */
  readonly cluster: ClusterReach | undefined;
  /** Called when the thread stops or starts to count among those that take runs. */
  readonly onSlotChange: (thread: T) => void;
  /** Runs have ended, or wait. */
  readonly onProgress: (thread: T) => void;
  /** Called when the thread has ended. */
  readonly onGone: (thread: T, end: ThreadEnd) => void;
}

/** The reactions of others to the end of a thread. */
export interface ThreadEnd {
  /** Undefined if the thread was closed, or if a run has received the error. */
  readonly error: YardmasterError | undefined;
  /** Runs that had not begun, or whose outcome was not reported. */
  readonly left: readonly Job[];
  /** Runs that had begun, and are not the cause. */
  readonly interrupted: readonly Job[];
}

/** A run on a thread. */
export interface Running {
  readonly threadId: number;
  /** Of the task. */
  readonly key: string;
  readonly isWaiting: boolean;
  /** Milliseconds for which its event loop has been busy. */
  readonly busyMs: () => number;
}

/**
 * The services for the tasks of a thread: they reach all that their worker reaches, through it.
 * @param open - asks the worker for a connection
 */
export function surroundingsOfThread(
  { cluster }: ThreadData,
  open: (request: TunnelRequest) => void,
): TaskSurroundings | undefined {
  if (cluster === undefined) return undefined;
  const transports = cluster.schemes.map((scheme) => new TunnelTransport(scheme, open));
  const { scheduler, moduleFolders, codeRoot, reconnect, resultStore } = cluster;
  const modules = moduleFolders && new AllowedModules(moduleFolders, codeRoot);
  const reach = { scheduler, transports, modules, reconnect, resultStore };
  return reachOf(reach, new SystemClock());
}
