import type { StackFrame } from '../../core/api/index.ts';
import { DURATION, type Schema, wholeNumber } from '../../core/shared/schema.ts';
import type { TaskFunction } from '../tasks/index.ts';
import {
  type Restarted,
  type RestartOptions,
  type RunOptions,
  WorkerRunner,
} from './cluster-access.ts';
import {
  DiagnosticsAccess,
  type InspectOptions,
  type UnansweredWorker,
} from './diagnostics-access.ts';
import type { BenchmarkOptions, HardwareFigures } from './hardware.ts';
import { checkOptions } from './options.ts';
import { entriesIn } from './structure.ts';

/** Which workers are asked, and for how long. */
export interface AskOptions extends InspectOptions {
  /** Addresses, names or hosts. Default: all. */
  readonly workers?: readonly string[];
}

/** A task that runs, and where its JavaScript is. */
export interface CallStack {
  readonly key: string;
  /** Address of the worker. */
  readonly worker: string;
  /** Seconds since it began. */
  readonly seconds: number;
  /** True when the task has seceded: it runs, but does not occupy one of the worker's threads. */
  readonly hasSeceded: boolean;
  /** True when no client or task wants the result any more. */
  readonly isCancelled: boolean;
  /** Id of its thread, within the process of the worker. */
  readonly thread?: number;
  /** Innermost first; none when it computes nothing at present: it waits. */
  readonly frames: readonly StackFrame[];
  /** The reason why there are no frames, if that is not because the task waits. */
  readonly unseen?: string;
}

/** The running tasks, and the workers that did not answer. */
export interface CallStacks {
  readonly running: readonly CallStack[];
  /** The reason why not, by address. */
  readonly silent: ReadonlyMap<string, string>;
}

/** The number of connections. */
export interface ConnectionCounters {
  /**
   * `all` includes connections that have not been identified; `toWorkers` are the scheduler's own,
   * to fetch results.
   */
  readonly scheduler: Readonly<Record<'workers' | 'clients' | 'all' | 'toWorkers', number>>;
  /** `incoming` of peers and clients, `outgoing` to peers, answers that it is `sending` now. */
  readonly workers: ReadonlyMap<
    string,
    Readonly<Record<'incoming' | 'outgoing' | 'sending', number>> | UnansweredWorker
  >;
}

/** The part of a client that has workers do something beside their tasks. */
export class WorkerAccess extends DiagnosticsAccess {
  /**
   * Chooses workers, and where in them, for functions that are no tasks:
   * `client.on({ workers: ['alice'], place: 'threads' }).run(fn, 1)`.
   */
  on<Place extends 'worker' | 'threads' = 'worker', Errors extends 'raise' | 'return' = 'raise'>(
    options: RunOptions<Place, Errors> = {},
  ): WorkerRunner<Place, Errors> {
    const command = <T>(name: string, parameters: Readonly<Record<string, unknown>>): Promise<T> =>
      this.command(name, parameters);
    return new WorkerRunner(command, options, this.session.codeRoot);
  }

  /** Runs a function once on every worker. See {@link WorkerRunner.run}. */
  run<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...args: Args
  ): Promise<Map<string, Awaited<Result>>> {
    return this.on().run(fn, ...args);
  }

  /**
   * The same request to workers, by the scheduler; the answers by address. One that does not answer
   * has an `error`.
   * @param method - `inspect`, with `{ what }`: `identity`, `versions`, `logs`, `connections`,
   *   `call-stacks`, `state`
   */
  async broadcast<T = Readonly<Record<string, unknown>>>(
    method: string,
    parameters: Readonly<Record<string, unknown>>,
    options: AskOptions = {},
  ): Promise<Map<string, T | UnansweredWorker>> {
    return new Map(
      await this.command<[string, T | UnansweredWorker][]>('broadcast', {
        ...options,
        method,
        parameters,
      }),
    );
  }

  /**
   * A request to one worker, by the scheduler, as for {@link broadcast}.
   * @throws RemoteError what the worker answers with; `ERR_NO_WORKER`, `ERR_TIMEOUT`
   */
  async proxy<T = Readonly<Record<string, unknown>>>(
    worker: string,
    method: string,
    parameters: Readonly<Record<string, unknown>>,
    options: InspectOptions = {},
  ): Promise<T> {
    return this.command('proxy', { ...options, worker, method, parameters });
  }

  /**
   * The present call stacks of running tasks: of these, or of all that run. A thread
   * that computes is stopped for about a millisecond to see; a task that waits has no calls to show.
   */
  async callStack(futures?: unknown, options: AskOptions = {}): Promise<CallStacks> {
    const keys = futures === undefined ? {} : { keys: entriesIn(futures).map(({ key }) => key) };
    const answers = await this.command<
      [string, { running: Omit<CallStack, 'worker'>[] } | UnansweredWorker][]
    >('call-stacks', { ...options, ...keys });
    const running: CallStack[] = [];
    const silent = new Map<string, string>();
    for (const [worker, answer] of answers) {
      if ('error' in answer) silent.set(worker, answer.error);
      else for (const stack of answer.running) running.push({ ...stack, worker });
    }
    return { running, silent };
  }

  /** Connections of the scheduler and of the workers. */
  async connectionCounters(options: AskOptions = {}): Promise<ConnectionCounters> {
    const { scheduler, workers } = await this.command<{
      scheduler: ConnectionCounters['scheduler'];
      workers: [
        string,
        Readonly<Record<'incoming' | 'outgoing' | 'sending', number>> | UnansweredWorker,
      ][];
    }>('connections', options);
    return { scheduler, workers: new Map(workers) };
  }

  /**
   * Forgets all tasks and data of all clients, and has the processes of workers replaced that have a
   * nanny. Every future, of every client, fails with `ERR_CANCELLED`.
   */
  async restart(options: RestartOptions = {}): Promise<Restarted> {
    return this.command('restart', options);
  }

  /**
   * Measures how fast the workers move bytes: in memory, to disk, and to each other. Takes seconds,
   * during which they do little else.
   */
  async benchmarkHardware(options: BenchmarkOptions = {}): Promise<HardwareFigures> {
    const sizes: Schema = { type: 'array', items: wholeNumber(1), minItems: 1 };
    checkOptions('client.benchmarkHardware', options, { sizes, durationMs: DURATION });
    const { benchmarkHardware } = await import('./hardware.ts');
    const { workers } = await this.identity();
    return benchmarkHardware(
      workers.map(({ address }) => address),
      (chosen) => this.on({ workers: chosen }),
      options,
    );
  }
}
