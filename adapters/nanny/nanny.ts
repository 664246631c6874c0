import {
  type Clock,
  type Logger,
  type NannyHooks,
  type RemotePlugin,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/background.ts';
import { RESTART_RULES, restartDelayMs, type RestartRules } from './backoff.ts';
import type { RestartEvent } from './messages.ts';
import {
  describeEnd,
  type PluginMessage,
  type ProcessEnd,
  WorkerProcess,
  type WorkerProcessOptions,
} from './worker-process.ts';

/** Time for a process to close, after the time it was given to retire, before it is killed. */
const TERMINATION_MS = 8000;
const STUCK_AFTER_MS = 30_000;
const RETIRE_MS = 10_000;

/** The plugins of a nanny that clients have registered with the scheduler. */
export interface NannyPluginSet {
  /** Adds and removes until there are these. Never rejects. */
  agree(wanted: readonly RemotePlugin[]): Promise<void>;
  /** Adds or removes one. */
  answer(request: WireMessage): Promise<WireMessage>;
}

/** What to look after, and how. */
export interface NannyOptions {
  /** Of the worker, for messages. It has to be in `args` for the worker to keep it. */
  readonly name: string;
  /** Arguments of `yardmaster`, from `worker` on, without `--supervised`. */
  readonly args: readonly string[];
  /** Arguments of Node itself. Default: none. */
  readonly nodeArgs?: readonly string[];
  /** Default: the command line of this package. */
  readonly program?: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds without a sign of life after which the process is killed. Default 30 000. */
  readonly stuckAfterMs?: number;
  /** Default: see {@link RESTART_RULES}. */
  readonly rules?: Partial<RestartRules>;
  /** What the process prints, which is what its tasks print. Default: to our own stdout. */
  readonly onStdout?: (text: string) => void;
  /** Default: to our own stderr, from when it has registered. */
  readonly onStderr?: (text: string, hasRegistered: boolean) => void;
  /** Plugins, say. They must not throw. */
  readonly hooks?: Partial<NannyHooks>;
  /** Adds and removes plugins that clients register. Default: there are none. */
  readonly plugins?: NannyPluginSet;
  /** Each time it has registered. */
  readonly onRegistered?: (address: string) => void;
}

/**
 * Supervises a worker in a separate process: when the process dies, is stuck, or is asked to
 * restart, another one replaces it under the same name. After repeated deaths the pauses before a
 * start grow, and at last no further process is started; the log says so.
 *
 * A process is not replaced when it never registered, was asked to end, or has lost its scheduler.
 */
export class Nanny {
  readonly name: string;
  /** Resolves when there is no process any more and none will be started. */
  readonly ended: Promise<void>;
  private process: WorkerProcess | undefined;
  private last: ProcessEnd | undefined;
  /** Why it ended, unless it was asked to. */
  private failure: YardmasterError | undefined;
  private hasComeUp = false;
  private deathCount = 0;
  private restarts = 0;
  private timer: Timer | undefined;
  private isClosing = false;
  private isOver = false;
  private resolveEnded!: () => void;

  constructor(private readonly options: NannyOptions) {
    this.name = options.name;
    this.ended = new Promise((resolve) => {
      this.resolveEnded = resolve;
    });
    this.begin();
  }

  /** Of the present process; undefined between two. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** How often it has put another process into the place of one that was gone. */
  get restartCount(): number {
    return this.restarts;
  }

  /** Why there is no process any more; undefined when it was asked to end, or has not ended. */
  get error(): YardmasterError | undefined {
    return this.failure;
  }

  /** Why it is not there, with what it wrote to its error stream. */
  deathError(): YardmasterError {
    const { name, last } = this;
    return this.failure ?? deathOf(name, last);
  }

  /**
   * Ends the worker for good. It gives away first what only it holds, closes, and is killed when that
   * takes too long.
   *
   * @param retireMs - milliseconds for giving away; 0: it closes at once. Default 10 000
   */
  async close(retireMs = RETIRE_MS): Promise<void> {
    if (this.isOver) return;
    this.isClosing = true;
    this.timer?.cancel();
    if (this.pid === undefined && this.timer !== undefined) {
      this.finish(undefined);
      return;
    }
    this.process?.close(retireMs);
    const limit = this.options.clock.setTimer(retireMs + TERMINATION_MS, () => {
      const { name, pid } = this;
      this.options.log.warn({ worker: name, pid }, `worker "${name}" did not close; it is killed`);
      this.kill();
    });
    await this.ended;
    limit.cancel();
  }

  /** Ends the process at once, as a crash would; another one takes its place. */
  kill(): void {
    this.process?.kill();
  }

  /** Ends the process in good order; another one takes its place. */
  restart(): void {
    this.process?.restart();
  }

  private begin(): void {
    const { options } = this;
    this.timer = undefined;
    const environment: Record<string, string> = {};
    options.hooks?.processStarting?.(environment);
    const settings: WorkerProcessOptions = {
      args: [...options.args, '--supervised'],
      environment,
      clock: options.clock,
      stuckAfterMs: options.stuckAfterMs ?? STUCK_AFTER_MS,
      onStdout: options.onStdout ?? ((text) => void process.stdout.write(text)),
      onStderr: options.onStderr ?? forwardOnceUp,
      onRegistered: (address) => this.onRegistered(address),
      onPlugins: (message) => {
        inBackground(this.onPlugins(started, message), (error) => {
          options.log.error({ err: error }, 'plugins of the nanny could not be changed');
        });
      },
      ...(options.nodeArgs === undefined ? {} : { nodeArgs: options.nodeArgs }),
      ...(options.program === undefined ? {} : { program: options.program }),
    };
    const started = new WorkerProcess(settings);
    this.process = started;
    const ended = started.ended.then((end) => {
      this.onEnd(end);
    });
    inBackground(ended, (error) => {
      this.options.log.error({ err: error, worker: this.name }, 'a worker could not be replaced');
    });
  }

  private onRegistered(address: string): void {
    this.hasComeUp = true;
    if (this.last !== undefined) {
      const event = restartEvent(this.name, this.last, this.restarts);
      this.process?.send({ op: 'replaces', event });
      this.options.log.info({ worker: this.name, address }, `worker "${this.name}" is back`);
    }
    this.options.hooks?.processRegistered?.(address);
    this.options.onRegistered?.(address);
  }

  /** Answers what the scheduler asks through the worker process. Never rejects. */
  private async onPlugins(from: WorkerProcess, message: PluginMessage): Promise<void> {
    const { plugins } = this.options;
    if (message.op === 'nanny-plugins') {
      await plugins?.agree(message.wanted);
      return;
    }
    const { id, request } = message;
    try {
      if (plugins === undefined) {
        throw new YardmasterError('ERR_PLUGIN_SETUP', 'this nanny takes no plugins from clients');
      }
      const answer = await plugins.answer(request);
      from.send({ op: 'nanny-plugin-answer', id, answer });
    } catch (cause) {
      const code = YardmasterError.is(cause) ? cause.code : 'ERR_PLUGIN_SETUP';
      const text = cause instanceof Error ? cause.message : String(cause);
      from.send({ op: 'nanny-plugin-answer', id, error: { code, message: text } });
    }
  }

  private onEnd(end: ProcessEnd): void {
    this.last = end;
    this.process = undefined;
    const { pid, exitCode, signal } = end;
    this.options.hooks?.processEnded?.({ reason: describeEnd(end), pid, exitCode, signal });
    const { words } = end;
    if (this.isClosing || words?.kind === 'done') this.finish(undefined);
    else if (!this.hasComeUp) this.finish(deathOf(this.name, end));
    else if (words?.kind === 'failed' && words.code === 'ERR_CLOSED') {
      // Its scheduler is gone, and with it all that was to be computed.
      this.finish(new YardmasterError('ERR_CLOSED', words.reason, { worker: this.name }));
    } else this.replace(end);
  }

  private replace(end: ProcessEnd): void {
    const { name, options } = this;
    const rules = { ...RESTART_RULES, ...options.rules };
    const wasStable = (end.lifeMs ?? 0) >= rules.stableAfterMs || end.words?.kind === 'restart';
    this.deathCount = wasStable ? 1 : this.deathCount + 1;
    const delayMs = restartDelayMs(rules, this.deathCount);
    if (delayMs === undefined) {
      const error = deathOf(name, end, this.deathCount);
      if (rules.attemptsMax > 0) options.log.error({ err: error, worker: name }, error.message);
      this.finish(error);
      return;
    }
    const { pid, exitCode, signal } = end;
    const wrote = end.lifeMs === undefined ? wroteText(end) : '';
    options.log.warn(
      { worker: name, pid, exitCode, signal, deathCount: this.deathCount, delayMs },
      `the process ${pid ?? ''} of worker "${name}" ${describeEnd(end)}${wrote}; another one starts in ${delayMs / 1000} s`,
    );
    this.timer = options.clock.setTimer(delayMs, () => {
      this.restarts++;
      this.begin();
    });
  }

  private finish(failure: YardmasterError | undefined): void {
    this.failure = failure;
    this.isOver = true;
    this.resolveEnded();
  }
}

function forwardOnceUp(text: string, hasRegistered: boolean): void {
  // Before the worker has registered, its output is reported only as part of the error.
  if (hasRegistered) process.stderr.write(text);
}

function restartEvent(name: string, end: ProcessEnd, restartCount: number): RestartEvent {
  const { pid, exitCode, signal } = end;
  const reason = describeEnd(end);
  return { action: 'worker-restarted', name, reason, pid, exitCode, signal, restartCount };
}

function deathOf(name: string, end: ProcessEnd | undefined, deathCount = 1): YardmasterError {
  const often = deathCount > 1 ? ` It died ${deathCount} times in a row; its nanny gives up.` : '';
  return new YardmasterError(
    'ERR_NO_WORKER',
    end === undefined
      ? `the worker "${name}" has not ended`
      : `the process of worker "${name}" ${describeEnd(end)}${wroteText(end)}.${often}`,
    { worker: name, pid: end?.pid, exitCode: end?.exitCode, signal: end?.signal },
    end?.failure === undefined ? {} : { cause: end.failure },
  );
}

function wroteText({ stderr }: ProcessEnd): string {
  const text = stderr.trim();
  return text === '' ? ', and wrote nothing to its error stream' : `; on its error stream: ${text}`;
}
