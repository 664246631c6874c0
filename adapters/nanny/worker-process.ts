import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import {
  type Clock,
  every,
  type ProcessEnding,
  type RemotePlugin,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';

/** Characters of the error stream that are kept for the message about a process that died. */
const STDERR_KEPT = 4000;
/** For which streams are read that are still open when the process is gone. */
const STREAMS_AFTER_EXIT_MS = 1000;

/**
 * Freed memory shall go back to the system, so that the worker's resident set shows what it uses.
 * The GNU C library otherwise keeps buffers for later use, and the more of them the larger they
 * are. Other C libraries ignore this.
 */
const ENVIRONMENT = { MALLOC_TRIM_THRESHOLD_: '65536' };

export interface WorkerProcessOptions {
  /** Of the worker, for lists of processes. */
  readonly name: string;
  /** The message to the process at its start: plain data. */
  readonly settings: object;
  /** Arguments of Node itself. Default: none. */
  readonly nodeArgs?: readonly string[];
  /** Default: the command line of this package. */
  readonly program?: string;
  /** Beside what this process has. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Milliseconds without a sign of life, once it has registered, after which it counts as stuck. */
  readonly stuckAfterMs: number;
  readonly onStdout: (text: string) => void;
  /** @param hasRegistered - false: the text may be better reported as part of an error */
  readonly onStderr: (text: string, hasRegistered: boolean) => void;
  readonly onRegistered: (address: string) => void;
  /** It speaks of plugins of the nanny. */
  readonly onPlugins: (message: PluginMessage) => void;
}

/** A message of a worker process about plugins of its nanny. */
export type PluginMessage = Extract<
  FromWorkerProcess,
  { readonly op: 'nanny-plugin' | 'nanny-plugins' }
>;

export interface ProcessEnd {
  readonly pid: number | undefined;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** The reason that the process gave before it ended, if it gave one. */
  readonly words: ExitReason | undefined;
  /** The reason why it could not be started. */
  readonly failure: Error | undefined;
  readonly wasStuck: boolean;
  /** Milliseconds since it registered; undefined: it never did. */
  readonly lifeMs: number | undefined;
  /** The end of its error stream. */
  readonly stderr: string;
}

/** Of all nannies of this process, so that none outlives it. */
const running = new Set<ChildProcess>();
let isWatchingExit = false;

/** One run of a worker in a separate process: `yardmaster worker-process`. */
export class WorkerProcess {
  /** Resolves when the process is gone, however it went, and its streams are read. */
  readonly ended: Promise<ProcessEnd>;
  private readonly child: ChildProcess;
  private readonly watch: Timer;
  private stderr = '';
  private words: ExitReason | undefined;
  private registeredMs: number | undefined;
  /** Seconds of this process without a sign of life from the other one. */
  private silence = 0;
  private wasStuck = false;
  private isOver = false;

  constructor(private readonly options: WorkerProcessOptions) {
    const { clock, name, settings, nodeArgs = [] } = options;
    const program = options.program ?? commandFile();
    this.child = spawn(process.execPath, [...nodeArgs, program, 'worker-process', name], {
      env: { ...ENVIRONMENT, ...process.env, ...options.environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced', // It knows Infinity.
    });
    keepTrackOf(this.child);
    this.child.stdout?.setEncoding('utf8').on('data', options.onStdout);
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-STDERR_KEPT);
      options.onStderr(text, this.hasRegistered);
    });
    this.child.on('message', (message) => this.onMessage(message as FromWorkerProcess));
    this.send({ op: 'start', settings });
    this.watch = every(clock, ALIVE_MS, () => this.look());
    this.ended = new Promise((resolve) => {
      const end = (how: Partial<ProcessEnd>): void => resolve(this.onEnd(how));
      this.child.once('error', (failure) => {
        if (this.child.pid === undefined) end({ failure });
      });
      // A process that a task has started may keep the streams open long after the worker is gone.
      this.child.once('exit', () => {
        this.watch.cancel();
        const timer = clock.setTimer(STREAMS_AFTER_EXIT_MS, () => {
          this.child.stdout?.destroy();
          this.child.stderr?.destroy();
        });
        this.child.once('close', () => timer.cancel());
      });
      // Unlike `exit`, when the streams are read as well.
      this.child.once('close', (code, signal) => {
        end({ exitCode: code ?? undefined, signal: signal ?? undefined });
      });
    });
  }

  /** Undefined when it is gone. */
  get pid(): number | undefined {
    return this.isOver ? undefined : this.child.pid;
  }

  get hasRegistered(): boolean {
    return this.registeredMs !== undefined;
  }

  /** Asks it to close; before it has registered, there is nothing to close in order. */
  close(retireMs: number): void {
    if (this.hasRegistered) this.send({ op: 'close', retireMs });
    else this.child.kill('SIGTERM');
  }

  /** Ends it in good order, with nothing given away, so that another one takes its place. */
  restart(): void {
    if (this.hasRegistered) this.send({ op: 'restart' });
    else this.child.kill('SIGTERM');
  }

  /** Ends it at once, as a crash would. */
  kill(): void {
    this.child.kill('SIGKILL');
  }

  send(message: ToWorkerProcess): void {
    // What does not arrive needs no answer: the process is about to be gone.
    if (this.child.connected) this.child.send(message, () => undefined);
  }

  private onMessage(message: FromWorkerProcess): void {
    this.silence = 0;
    if (message.op === 'ends') this.words = message.words;
    if (message.op === 'nanny-plugin' || message.op === 'nanny-plugins') {
      this.options.onPlugins(message);
    }
    if (message.op !== 'registered') return;
    this.registeredMs = this.options.clock.nowMs();
    this.options.onRegistered(message.address);
  }

  /**
   * Counts its own checks instead of the time, so that a pause of both processes does not count as
   * silence of the worker.
   */
  private look(): void {
    if (!this.hasRegistered || this.wasStuck) return;
    this.silence++;
    if (this.silence * ALIVE_MS <= this.options.stuckAfterMs) return;
    this.wasStuck = true;
    this.kill();
  }

  private onEnd({ exitCode, signal, failure }: Partial<ProcessEnd>): ProcessEnd {
    const { words, wasStuck, stderr, registeredMs } = this;
    this.isOver = true;
    this.watch.cancel();
    const lifeMs =
      registeredMs === undefined ? undefined : this.options.clock.nowMs() - registeredMs;
    const { pid } = this.child;
    return { pid, exitCode, signal, failure, words, wasStuck, lifeMs, stderr };
  }
}

/** For people: `was killed by SIGKILL`. */
export function describeEnd(end: ProcessEnd): string {
  const { failure, wasStuck, words, signal, exitCode } = end;
  if (failure !== undefined) return `could not be started: ${failure.message}`;
  if (wasStuck) return 'gave no sign of life any more and was killed';
  if (words?.kind === 'restart') return `was asked to restart: ${words.reason}`;
  if (words?.kind === 'failed') return `failed: ${words.reason}`;
  if (signal !== undefined) return `was killed by ${signal}`;
  return `ended with exit code ${String(exitCode)}`;
}

function keepTrackOf(child: ChildProcess): void {
  running.add(child);
  child.once('close', () => running.delete(child));
  if (isWatchingExit) return;
  isWatchingExit = true;
  process.once('exit', () => {
    for (const left of running) left.kill('SIGKILL');
  });
}

/** The compiled command, also when this file itself runs uncompiled. */
function commandFile(): string {
  try {
    return createRequire(import.meta.url).resolve('#cli');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_CONFIG',
      'worker processes run the command of the package, which is not in this bundle: leave yardmaster out of the bundle, or use threads',
      {},
      { cause },
    );
  }
}

/** The port at which debuggers look first. */
export const INSPECT_PORT = 9229;

/**
 * The argument by which Node lets a debugger attach, on this machine only, because a debugger may run anything.
 * @param port - 0: any; true: {@link INSPECT_PORT}
 */
export function inspectArgument(port: number | true): string {
  return `--inspect=127.0.0.1:${port === true ? INSPECT_PORT : port}`;
}

/** The reason why a worker process is about to end, as it says itself. A crash says nothing. */
export type ExitReason =
  /** The scheduler or the nanny has requested it. */
  | { readonly kind: 'done'; readonly reason: string }
  /** It shall be started again: the scheduler said so, or took it for dead. */
  | { readonly kind: 'restart'; readonly reason: string }
  /** It failed while it ran. */
  | { readonly kind: 'failed'; readonly reason: string; readonly code: string };

/** Messages from a worker process to its nanny. */
export type FromWorkerProcess =
  | { readonly op: 'registered'; readonly address: string }
  /** Every second, from the thread that serves scheduler and peers. */
  | { readonly op: 'alive' }
  | { readonly op: 'ends'; readonly words: ExitReason }
  /** Plugins that clients have registered for nannies: all that there shall be. */
  | { readonly op: 'nanny-plugins'; readonly wanted: readonly RemotePlugin[] }
  /** One of them is to be added or removed; it is answered. */
  | { readonly op: 'nanny-plugin'; readonly id: number; readonly request: WireMessage };

/** Messages from a nanny to its worker process. */
export type ToWorkerProcess =
  /** The first message. */
  | { readonly op: 'start'; readonly settings: object }
  /** Close in good order; before that, give away what only this worker holds, if there is time. */
  | { readonly op: 'close'; readonly retireMs: number }
  /** Close in good order, with nothing given away; another process takes its place. */
  | { readonly op: 'restart' }
  /** The answer to `registered`, when this process replaces another one. */
  | { readonly op: 'replaces'; readonly event: RestartEvent }
  /** The answer to `nanny-plugin`. */
  | {
      readonly op: 'nanny-plugin-answer';
      readonly id: number;
      readonly answer?: WireMessage;
      readonly error?: { readonly code: string; readonly message: string };
    };

/** Published under the topics `all` and the address of the worker that came back, with the end of the process before. */
export interface RestartEvent extends ProcessEnding {
  readonly action: 'worker-restarted';
  readonly name: string;
  /** Restarts by this nanny, this one included. */
  readonly restartCount: number;
}

/** Between two signs of life. */
export const ALIVE_MS = 1000;
