import {
  type Clock,
  type ErrorCode,
  every,
  type Logger,
  messageOf,
  type NannyHooks,
  type RemotePlugin,
  type Timer,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { Deferred } from '../../core/util/promises.ts';
import { exitProcess } from '../executors/threads/spawn.ts';
import {
  ALIVE_MS,
  describeEnd,
  type ExitReason,
  type FromWorkerProcess,
  type PluginMessage,
  type ProcessEnd,
  type RestartEvent,
  type ToWorkerProcess,
  WorkerProcess,
  type WorkerProcessOptions,
} from './worker-process.ts';

/** Time for a process to close, after the time it was given to retire, before it is killed. */
const TERMINATION_MS = 8000;

/** The plugins of a nanny that clients have registered with the scheduler. */
export interface NannyPluginSet {
  /** Adds and removes until there are these. Never rejects. */
  agree(wanted: readonly RemotePlugin[]): Promise<void>;
  /** Adds or removes one. */
  answer(request: WireMessage): Promise<WireMessage>;
}

type EachProcess = Pick<
  WorkerProcessOptions,
  'name' | 'settings' | 'nodeArgs' | 'program' | 'clock' | 'stuckAfterMs'
>;

export interface NannyOptions extends EachProcess {
  readonly log: Logger;
  /** Milliseconds for giving away results when it closes. */
  readonly retireMs: number;
  /** Default: see {@link RESTART_RULES}. */
  readonly rules?: Partial<RestartRules>;
  /** Receives the output of the process, which is that of its tasks. Default: our own stdout. */
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
  private readonly ending = new Deferred();
  /** Resolves when there is no process any more and none will be started. */
  readonly ended = this.ending.promise;
  private process: WorkerProcess | undefined;
  private last: ProcessEnd | undefined;
  /** The reason why it ended, unless it was asked to. */
  private failure: YardmasterError | undefined;
  private hasComeUp = false;
  private deathCount = 0;
  private restarts = 0;
  private timer: Timer | undefined;
  private isClosing = false;
  private isOver = false;

  constructor(private readonly options: NannyOptions) {
    this.name = options.name;
    this.begin();
  }

  /** Of the present process; undefined between two. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** The number of times that it has replaced a process that was gone. */
  get restartCount(): number {
    return this.restarts;
  }

  /** The reason why there is no process any more; undefined when it was asked to end, or has not ended. */
  get error(): YardmasterError | undefined {
    return this.failure;
  }

  /** The reason why the process is not there, with the text of its error stream. */
  deathError(): YardmasterError {
    const { name, last } = this;
    return this.failure ?? deathOf(name, last);
  }

  /**
   * Ends the worker for good. It gives away first what only it holds, closes, and is killed when that
   * takes too long.
   *
   * @param retireMs - milliseconds for giving away; 0: it closes at once
   */
  async close(retireMs = this.options.retireMs): Promise<void> {
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
      name: options.name,
      settings: options.settings,
      environment,
      clock: options.clock,
      stuckAfterMs: options.stuckAfterMs,
      onStdout: options.onStdout ?? ((text) => void process.stdout.write(text)),
      onStderr: options.onStderr ?? forwardOnceUp,
      onRegistered: (address) => this.onRegistered(address),
      onPlugins: (message) => {
        inBackground(this.onPlugins(started, message), (error) => {
          options.log.error({ err: error }, 'plugins of the nanny could not be changed');
        });
      },
      nodeArgs: options.nodeArgs,
      program: options.program,
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
      from.send({ op: 'nanny-plugin-answer', id, error: { code, message: messageOf(cause) } });
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
    this.ending.resolve();
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

/** The rules for a worker that dies again and again. */
export interface RestartRules {
  /** Milliseconds before the first restart; twice as many before each further one. */
  readonly firstDelayMs: number;
  /** Milliseconds; it never waits longer. */
  readonly longestDelayMs: number;
  /** Milliseconds after which a registered worker counts as well, and the count begins anew. */
  readonly stableAfterMs: number;
  /** Early deaths in a row after which the nanny gives up. 0: it never restarts. */
  readonly attemptsMax: number;
}

/** Ten attempts within about eighty seconds. */
export const RESTART_RULES: RestartRules = {
  firstDelayMs: 100,
  longestDelayMs: 30_000,
  stableAfterMs: 10_000,
  attemptsMax: 10,
};

/**
 * Milliseconds before the next start; undefined: give up.
 * @param deathCount - early deaths in a row, at least 1
 */
export function restartDelayMs(rules: RestartRules, deathCount: number): number | undefined {
  if (deathCount > rules.attemptsMax) return undefined;
  return Math.min(rules.longestDelayMs, rules.firstDelayMs * 2 ** (deathCount - 1));
}

/** The methods of a worker that its nanny uses. */
export interface SupervisedWorker {
  readonly address: string;
  close(): Promise<void>;
  /** Gives away what only it holds. Never rejects. */
  retire(timeoutMs: number): Promise<void>;
  logEvent(topics: readonly string[], message: unknown): void;
}

/** Time for a worker to close when its nanny is gone; then its process ends. */
const CLOSE_MS = 8000;

interface Asked {
  resolve(answer: WireMessage): void;
  reject(error: Error): void;
}

type PluginAnswer = Extract<ToWorkerProcess, { readonly op: 'nanny-plugin-answer' }>;

/** The end of a worker process that is turned to its nanny. */
export class NannyLink {
  private readonly start = new Deferred<object>();
  /** The message of the nanny at the start. */
  readonly settings = this.start.promise;
  private readonly timer: Timer;
  private worker: SupervisedWorker | undefined;
  private request: 'close' | 'restart' | undefined;
  private readonly asked = new Map<number, Asked>();
  private askedCount = 0;

  /** @throws Error when no nanny started this process */
  constructor(clock: Clock) {
    if (process.send === undefined) throw new Error('this command is for processes of a nanny');
    this.timer = every(clock, ALIVE_MS, () => this.tell({ op: 'alive' }));
    // Ctrl-C reaches both; the nanny says what is to be done.
    process.on('SIGINT', () => undefined);
    process.on('message', (message) => {
      const done = this.onMessage(message as ToWorkerProcess);
      inBackground(done, 'what the nanny asked for could not be done');
    });
    // A worker that no nanny looks after must not stay, however its end went.
    process.on('disconnect', () => inBackground(this.onAbandoned(), () => exitProcess(1)));
    if (!process.connected) exitProcess(1); // The nanny ended before this process came to listen.
  }

  /** The request of the nanny; undefined: none yet. */
  get requested(): 'close' | 'restart' | undefined {
    return this.request;
  }

  registered(worker: SupervisedWorker): void {
    this.worker = worker;
    this.tell({ op: 'registered', address: worker.address });
  }

  /** Says why the process is about to end. Resolves when that has left. */
  ends(words: ExitReason): Promise<void> {
    this.timer.cancel();
    return new Promise((resolve) => {
      this.tell({ op: 'ends', words }, resolve);
    });
  }

  /** Sends the nanny the plugins that clients want it to have. */
  agree(wanted: readonly RemotePlugin[]): Promise<void> {
    this.tell({ op: 'nanny-plugins', wanted });
    return Promise.resolve();
  }

  /**
   * Has the nanny add or remove a plugin.
   * @throws YardmasterError as the nanny says, `ERR_CLOSED` when it is gone
   */
  answer(request: WireMessage): Promise<WireMessage> {
    const id = ++this.askedCount;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.tell({ op: 'nanny-plugin', id, request });
      if (!process.connected) this.dropAsked();
    });
  }

  private dropAsked(): void {
    for (const asked of this.asked.values()) {
      asked.reject(new YardmasterError('ERR_CLOSED', 'the nanny of this worker is gone'));
    }
    this.asked.clear();
  }

  private settle({ id, answer, error }: PluginAnswer): void {
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (error === undefined) asked?.resolve(answer ?? {});
    else asked?.reject(new YardmasterError(error.code as ErrorCode, error.message));
  }

  private async onMessage(message: ToWorkerProcess): Promise<void> {
    if (message.op === 'start') {
      this.start.resolve(message.settings);
      return;
    }
    if (message.op === 'nanny-plugin-answer') {
      this.settle(message);
      return;
    }
    const { worker } = this;
    if (worker === undefined) return;
    if (message.op === 'close') {
      this.request = 'close';
      if (message.retireMs > 0) await worker.retire(message.retireMs);
      await worker.close();
    } else if (message.op === 'restart') {
      this.request = 'restart';
      await worker.close();
    } else {
      const event: RestartEvent = message.event;
      worker.logEvent(['all', worker.address], event);
    }
  }

  /** Ends the worker when its nanny is gone, so that no unsupervised process remains. */
  private async onAbandoned(): Promise<void> {
    this.timer.cancel();
    this.dropAsked();
    if (this.worker === undefined) {
      exitProcess(1);
      return;
    }
    setTimeout(() => exitProcess(1), CLOSE_MS).unref();
    await this.worker.close();
  }

  private tell(message: FromWorkerProcess, then: () => void = () => undefined): void {
    if (process.connected) process.send?.(message, undefined, undefined, then);
    else then();
  }
}
