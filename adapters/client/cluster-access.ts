import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type ClosableWorkers,
  type ErrorPayload,
  type FunctionSpec,
  type MemoryMeasure,
  RemoteError,
  type RemotePlugin,
  type ShadowReport,
  type SlotName,
  type TaskSummary,
  type WhoHasReply,
  type Why,
  type WorkerIdentity,
  type WorkerStatus,
  YardmasterError,
} from '../../core/api/index.ts';
import { ANY, FIELDS, FLAG, oneOf, type Rules, TEXT } from '../../core/shared/schema.ts';
import { show } from '../../core/shared/words.ts';
import {
  deserialise,
  isCanonical,
  isTaskFunction,
  type TaskFunction,
  travellingFunction,
} from '../tasks/index.ts';
import { type AmmControl, ammControl } from './amm-control.ts';
import type { KeyEntry } from './entry.ts';
import type { Future } from './future.ts';
import { packTaskArguments } from './graph.ts';
import { hashOfValue, uniqueKey } from './keys.ts';
import { checkOptions, type SubmitOptions } from './options.ts';
import type { Session } from './session.ts';
import { entriesIn } from './structure.ts';
import { Submitter } from './submitter.ts';

/** The answer to `identity`. */
export interface SchedulerIdentity {
  readonly id: string;
  readonly address?: string;
  readonly workers: readonly (WorkerIdentity & {
    readonly status: WorkerStatus;
    /** Tasks on it, and results that it holds with their bytes. */
    readonly processingCount: number;
    readonly resultCount: number;
    readonly nbytes: number;
    readonly metrics: {
      readonly memoryBytes: number;
      readonly cpuPercent?: number;
      /** Results that its memory has no room for. */
      readonly spilledDiskBytes?: number;
    };
  })[];
}

/** The options of a restart. */
export interface RestartOptions {
  /** Milliseconds for the new workers to be there. Default 30 000. */
  readonly timeoutMs?: number;
  /** False: do not wait for them. Default true. */
  readonly wait?: boolean;
}

/** Workers that have restarted. When all do, those that are kept lose their tasks and data as well. */
export interface Restarted {
  /** Workers whose processes were replaced. */
  readonly restarted: readonly WorkerName[];
  /** Have no nanny, and work on. */
  readonly kept: readonly WorkerName[];
  /** Of the restarted ones, those that were not back in time. */
  readonly missing: readonly WorkerName[];
}

/** The options of replacing the processes of workers. */
export interface RestartWorkersOptions extends RestartOptions {
  /** The treatment of unknown and missing workers: an error, or part of the answer. Default `raise`. */
  readonly errors?: 'raise' | 'return';
}

/** The outcome of replacing the processes of workers. */
export interface RestartedWorkers extends Restarted {
  /** Names that no worker has. */
  readonly unknown: readonly string[];
}

/** Which workers the cluster can best do without. Default: idle ones, as with a `memoryRatio` of 2. */
export interface WorkersToCloseOptions extends Omit<ClosableWorkers, 'key'> {
  /**
   * Workers that go together, all of them or none: each alone, or all of a host. Default `address`. Where the
   * scheduler runs, `scheduler.amm.workersToClose` also takes a function.
   */
  readonly key?: 'address' | 'host';
}

/** Which workers to retire; without `workers` and `names`, those that can best be done without. */
export interface RetireOptions extends WorkersToCloseOptions {
  /** Addresses or names. */
  readonly workers?: readonly string[];
  readonly names?: readonly string[];
  /** Close them when they hold nothing any more. Default true; else they stay, without tasks. */
  readonly close?: boolean;
}

/** Address and name of a worker. */
export interface WorkerName {
  readonly address: string;
  readonly name: string;
}

/** The outcome of the retirement of workers. */
export interface Retired {
  readonly retired: readonly WorkerName[];
  /**
   * `no-recipients`: no worker can take its data; `stalled`: its data did not move; `left`: it left
   * by itself; `unknown`.
   */
  readonly kept: readonly {
    readonly worker: string;
    readonly reason: 'no-recipients' | 'stalled' | 'left' | 'unknown';
  }[];
}

/** The options of evening out the memory of workers. Fractions are of the memory limit of each worker. */
export interface RebalanceOptions {
  /** Addresses or names. Default: all. */
  readonly workers?: readonly string[];
  /** The measure of memory. Default: that of `scheduler.rebalance` of the configuration, `optimistic` there. */
  readonly measure?: MemoryMeasure;
  /** A worker that uses less gives nothing away. Default 0.3. */
  readonly senderMin?: number;
  /** A worker that uses more receives nothing. Default 0.6. */
  readonly recipientMax?: number;
  /** Workers closer to the mean than half of this are left alone. Default 0.1. */
  readonly gap?: number;
}

/** The outcome of a rebalance, by keys. */
export interface Rebalanced {
  readonly moved: readonly string[];
  /** Addresses of the workers that had them. */
  readonly senders: readonly string[];
  /** Was to be moved, and is in use, or gone, or did not arrive. */
  readonly stayed: readonly string[];
  /** Was asked for and is nowhere. If there is any, nothing was moved. */
  readonly missing: readonly string[];
}

/** The options of copying results. */
export interface ReplicateOptions {
  /** Copies of each. Default: one on every worker, also on those that come later. */
  readonly n?: number;
  /** Addresses, names or hosts of the workers to use. Default: all. */
  readonly workers?: readonly string[];
  /** Copies that each holder makes at once. Default 2. */
  readonly branchingFactor?: number;
  /** Drop copies beyond the number. Default true. */
  readonly dropSurplus?: boolean;
}

/** The part of a client that asks the scheduler about the cluster, and has data and workers moved. */
export class ClusterAccess extends Submitter {
  readonly amm: AmmControl;
  readonly policies: PolicyControl;

  protected constructor(session: Session, options: SubmitOptions) {
    super(session, options);
    this.amm = ammControl((command, parameters) => this.command(command, parameters));
    this.policies = policyControl((command, parameters) => this.command(command, parameters));
  }

  /**
   * Calls a command of the scheduler or of a plugin (`<plugin>.<command>`).
   * @throws RemoteError what the command threw
   */
  command<T = unknown>(command: string, parameters?: unknown): Promise<T> {
    return this.session.request('command', {
      command,
      parameters,
    });
  }

  /** All transitions of these keys, or caused by these stimuli, oldest first. */
  story(keysOrStimuli: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return this.command('story', { keys: keysOrStimuli });
  }

  /**
   * Explains the present state of a task, and how it got there; with the candidates of each decision while
   * decisions are recorded (`client.policies.recordDecisions`).
   * @param task - a future, or a key
   */
  why(task: Future<unknown> | string): Promise<Why> {
    return this.command('why', { key: typeof task === 'string' ? task : task.key });
  }

  /** The report of the shadow of a slot so far; undefined when there is none. */
  shadow(slot: SlotName): Promise<ShadowReport | undefined> {
    return this.command('shadow', { slot });
  }

  /** The summaries of these tasks, in order; those that the scheduler does not know are left out. */
  tasks(futures: unknown): Promise<readonly TaskSummary[]> {
    return this.command('tasks', { keys: this.keysIn(futures) });
  }

  /** Describes the scheduler and its workers. */
  identity(): Promise<SchedulerIdentity> {
    return this.command('identity');
  }

  /** Addresses of the workers that hold each result. */
  async whoHas(futures: unknown): Promise<Map<string, readonly string[]>> {
    const keys = this.keysIn(futures);
    const reply = await this.session.request<WhoHasReply>('who-has', { keys });
    return new Map(reply.keys.map((key, index) => [key, reply.whoHas[index] ?? []]));
  }

  /** Keys of the results that each worker holds, by address. */
  async hasWhat(): Promise<Map<string, readonly string[]>> {
    return new Map(await this.command<[string, readonly string[]][]>('has-what'));
  }

  /** Bytes of these results, or of all that the cluster knows, by key. */
  async nbytes(futures?: unknown): Promise<Map<string, number>> {
    const keys = futures === undefined ? [] : this.keysIn(futures);
    if (futures !== undefined && keys.length === 0) return new Map();
    return new Map(await this.command<[string, number][]>('nbytes', { keys }));
  }

  /**
   * Waits for these results, then makes copies of them, and has the cluster keep this number of
   * copies from then on. Returns the number of copies by key, which is smaller than requested when
   * there are too few workers.
   *
   * @throws what a future fails with; RemoteError `ERR_NO_WORKER` when the workers are not there
   */
  async replicate(futures: unknown, options: ReplicateOptions = {}): Promise<Map<string, number>> {
    return this.onceThere(entriesIn(futures), async (keys) => {
      const reply = await this.command<{ keys: string[]; copies: number[]; missing: string[] }>(
        'amm.replicate',
        { ...options, keys },
      );
      const none = reply.missing.map((key) => [key, 0] as const);
      return new Map([
        ...reply.keys.map((key, i) => [key, reply.copies[i] ?? 0] as const),
        ...none,
      ]);
    });
  }

  /**
   * Evens out the memory of the workers, once, by moving results: these, which are waited for, or any.
   * Safe while tasks run: what is in use stays.
   *
   * @throws what a future fails with; RemoteError `ERR_NO_WORKER` when a worker is not there
   */
  rebalance(futures?: unknown, options: RebalanceOptions = {}): Promise<Rebalanced> {
    if (futures === undefined) return this.command('amm.rebalance', options);
    return this.onceThere(entriesIn(futures), (keys) =>
      this.command('amm.rebalance', { ...options, keys }),
    );
  }

  /**
   * Takes workers out of service: they get no new tasks, what they hold moves to others, then they
   * close. Tasks that still run there begin anew elsewhere. Returns when all have gone, or why one has
   * not. A worker that stays works on as before.
   */
  retireWorkers(options: RetireOptions = {}): Promise<Retired> {
    return this.command('amm.retireWorkers', options);
  }

  /**
   * Has the processes of workers replaced, for those that have a nanny, and waits for the new ones. What
   * runs there begins anew, what only they hold is computed again when it is needed.
   *
   * @param workers - addresses, names or hosts. Default, also when empty: all
   * @throws RemoteError `ERR_NO_WORKER` that names an unknown worker, `ERR_TIMEOUT` that names those that
   *   were not back in time; neither with `errors: 'return'`
   */
  async restartWorkers(
    workers: readonly string[] = [],
    options: RestartWorkersOptions = {},
  ): Promise<RestartedWorkers> {
    return this.command('restart-workers', { workers, ...options });
  }

  /**
   * Sets a plugin up on all workers, and on those that come later, before their first task. When one
   * worker refuses it, none has it.
   *
   * @returns its name, for {@link unregisterWorkerPlugin}
   * @throws RemoteError `ERR_PLUGIN_SETUP` with what the workers said; YardmasterError `ERR_PLUGIN_LOAD`
   */
  async registerWorkerPlugin(plugin: WorkerPluginEntry): Promise<string> {
    const { name } = await this.command<{ readonly name: string }>(
      'register-worker-plugin',
      remotePlugin(plugin),
    );
    return name;
  }

  /** Tears it down on all workers. @throws RemoteError `ERR_PLUGIN_SETUP` when there is none such */
  async unregisterWorkerPlugin(name: string): Promise<void> {
    await this.command('unregister-worker-plugin', { name });
  }

  /**
   * Sets a plugin up in the nannies of all workers, and of those that come later. Workers without a nanny
   * go without it. When one nanny refuses it, none has it. Variables that it gives its process count from
   * the next start on: {@link restartWorkers}.
   *
   * @returns its name, for {@link unregisterNannyPlugin}
   * @throws RemoteError `ERR_PLUGIN_SETUP` with what the nannies said; YardmasterError `ERR_PLUGIN_LOAD`
   */
  async registerNannyPlugin(plugin: WorkerPluginEntry): Promise<string> {
    const { name } = await this.command<{ readonly name: string }>(
      'register-nanny-plugin',
      remotePlugin(plugin),
    );
    return name;
  }

  /** Tears it down in all nannies. @throws RemoteError `ERR_PLUGIN_SETUP` when there is none such */
  async unregisterNannyPlugin(name: string): Promise<void> {
    await this.command('unregister-nanny-plugin', { name });
  }

  /** The workers that `retireWorkers` would choose. */
  workersToClose(options: WorkersToCloseOptions = {}): Promise<readonly WorkerName[]> {
    return this.command('amm.workersToClose', options);
  }

  /**
   * The number of workers that the present work could use.
   * @param options - `targetDurationMs`: the work is to be done within this many milliseconds. Default 5000
   */
  async adaptiveTarget(options: { readonly targetDurationMs?: number } = {}): Promise<number> {
    return this.command('amm.adaptiveTarget', { targetDurationMs: 5000, ...options });
  }

  private keysIn(futures: unknown): string[] {
    return entriesIn(futures).map(({ key }) => key);
  }

  private onceThere<T>(
    entries: readonly KeyEntry[],
    then: (keys: readonly string[]) => Promise<T>,
  ): Promise<T> {
    const keys = [...new Set(entries.map(({ key }) => key))];
    return this.session.whenAllSettled(entries, { failFast: true }, () => then(keys));
  }
}

type Options = Readonly<Record<string, unknown>>;

/**
 * The policies of the scheduler, from afar. A client can name built-in policies, and those that the
 * operator offers under `scheduler.clientPolicies`: it must not make the scheduler load files of its choice.
 */
export interface PolicyControl {
  /** Names of the policies in charge, by slot. */
  current(): Promise<Readonly<Record<SlotName, string>>>;
  /**
   * Puts another policy in charge of a slot, between two stimuli; no task is lost.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  replace(slot: SlotName, policy: string, options?: Options): Promise<void>;
  /**
   * Puts the configured policy of a slot back in charge, made anew; without one, the default policy.
   * @throws RemoteError `ERR_SLOT` when a plugin fills the slot
   */
  restore(slot: SlotName): Promise<void>;
  /**
   * Calls a second policy for every decision of the slot and ignores its answers. `client.shadow`
   * shows how they differ from those of the policy in charge.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  startShadow(slot: SlotName, policy: string, options?: Options): Promise<void>;
  /**
   * Puts the policy that is in the shadow of a slot in charge, also one that the operator configured there,
   * and ends the shadow. Returns what it found.
   * @throws RemoteError `ERR_SLOT` when the slot has no shadow
   */
  promote(slot: SlotName): Promise<ShadowReport>;
  /** Ends it. Returns what it found, or undefined when there was none. */
  stopShadow(slot: SlotName): Promise<ShadowReport | undefined>;
  /**
   * Keeps this many of the newest decisions with their candidates, for `client.why`; 0 keeps none.
   */
  recordDecisions(lengthMax: number): Promise<void>;
}

/** Calls the commands of the scheduler. */
function policyControl(
  call: <T>(command: string, parameters?: Options) => Promise<T>,
): PolicyControl {
  const given = (slot: SlotName, use: string, options: Options | undefined): Options => ({
    slot,
    use,
    options,
  });
  return {
    current: () => call('policies'),
    replace: (slot, policy, options) => call('replace-policy', given(slot, policy, options)),
    restore: (slot) => call('restore-policy', { slot }),
    startShadow: (slot, policy, options) => call('start-shadow', given(slot, policy, options)),
    promote: (slot) => call('promote-shadow', { slot }),
    stopShadow: (slot) => call('stop-shadow', { slot }),
    recordDecisions: (lengthMax) => call('record-decisions', { keep: lengthMax }),
  };
}

/** A plugin for all workers. Only its name travels, so each worker has to find the module. */
export interface WorkerPluginEntry {
  /**
   * Its module: a path (one that starts with `.` is relative to the current folder), a `file:` URL, or a
   * package. `#Name` picks an export, else the default one.
   */
  readonly use: string | URL;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Under which it is known; one of the same name is replaced. Default: `use`. */
  readonly name?: string;
  /** Do nothing when there is one of that name. Default false. */
  readonly idempotent?: boolean;
}

const PLUGIN_RULES: Rules<WorkerPluginEntry> = {
  ...{ use: ANY, options: FIELDS, name: TEXT, idempotent: FLAG },
};

/**
 * The description of the plugin that the scheduler receives. @throws YardmasterError
 * `ERR_PLUGIN_LOAD`
 */
function remotePlugin(entry: WorkerPluginEntry): RemotePlugin & {
  readonly idempotent: boolean;
} {
  const isCode = (entry as { readonly setup?: unknown } | undefined)?.setup !== undefined;
  const given = isCode ? { use: entry as never } : entry;
  checkOptions('client.registerWorkerPlugin', given, PLUGIN_RULES);
  const { use, name, options, idempotent } = given;
  const text: unknown = use instanceof URL ? use.href : use;
  if (typeof text !== 'string' || text === '') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `a plugin for workers is named by its module, as in { use: "./plugin.js" }, got ${show(use)}; code cannot travel`,
    );
  }
  return {
    name: name ?? text,
    use: located(text),
    options,
    idempotent: idempotent ?? false,
  };
}

/** The same module from wherever a worker runs on this machine. */
function located(use: string): string {
  const hash = use.lastIndexOf('#');
  const [module, rest] = hash > 0 ? [use.slice(0, hash), use.slice(hash)] : [use, ''];
  if (module.startsWith('file:')) return fileURLToPath(module) + rest;
  return module.startsWith('.') ? resolve(module) + rest : use;
}

/** The place and the options of functions that are run without being tasks. */
export interface RunOptions<
  Place extends 'worker' | 'threads' = 'worker' | 'threads',
  Errors extends 'raise' | 'return' = 'raise' | 'return',
> {
  /** Addresses, names or hosts. Default: all workers. */
  readonly workers?: readonly string[];
  /** In the thread of the worker itself, or once in each of its threads for tasks. Default `worker`. */
  readonly place?: Place;
  /** `return` gives the errors in the place of results. Default `raise`: fails with the first. */
  readonly errors?: Errors;
  /** Milliseconds for each worker. Default: no limit. */
  readonly timeoutMs?: number;
}

/** The outcome of a run on one worker. */
export type RunOutcome<Result, Place, Errors> =
  ('threads' extends Place ? Result[] : Result) | ('return' extends Errors ? Error : never);

/** The answer of a worker. */
interface RunReply {
  readonly results?: readonly { readonly value?: Uint8Array; readonly error?: ErrorPayload }[];
  readonly error?: string;
}

type Command = <T>(command: string, parameters: Readonly<Record<string, unknown>>) => Promise<T>;

/** Runs functions on workers, beside their tasks. `client.on(options)` makes one. */
export class WorkerRunner<
  Place extends 'worker' | 'threads' = 'worker',
  Errors extends 'raise' | 'return' = 'raise',
> {
  /** @internal */
  constructor(
    private readonly command: Command,
    private readonly options: RunOptions<Place, Errors>,
    private readonly codeRoot?: string,
  ) {
    checkOptions('client.on', options, {
      ...{ workers: ANY, place: oneOf('worker', 'threads') },
      ...{ errors: oneOf('raise', 'return'), timeoutMs: ANY },
    });
  }

  /**
   * Runs a function on each of the workers, at once and whatever they do. The results by address.
   *
   * @throws RemoteError what the function threw; `ERR_NO_WORKER` when there is no such worker
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FUNCTION_MISSING`
   */
  async run<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...args: Args
  ): Promise<Map<string, RunOutcome<Awaited<Result>, Place, Errors>>> {
    if (!isTaskFunction(fn)) {
      throw new YardmasterError(
        'ERR_FUNCTION_MISSING',
        'only what defineTasks has given can be run on workers',
      );
    }
    const { workers, place = 'worker', errors = 'raise', timeoutMs } = this.options;
    const { name } = fn;
    const packed = packTaskArguments(name, args, () => undefined);
    // Finds in them what would arrive empty.
    if (!isCanonical(packed.bytes)) hashOfValue(args, 'arguments', false);
    const runSpec: FunctionSpec = { ...travellingFunction(fn, this.codeRoot), args: packed.bytes };
    const answers = await this.command<readonly (readonly [string, RunReply])[]>('broadcast', {
      method: 'run',
      parameters: { key: uniqueKey(name), runSpec, place },
      workers,
      timeoutMs,
    });
    const results = new Map<string, RunOutcome<Awaited<Result>, Place, Errors>>();
    for (const [address, reply] of answers) {
      const result = resultOf(address, name, reply);
      if (result instanceof Error && errors === 'raise') throw result;
      const isList = place === 'threads' || result instanceof Error;
      const outcome = isList ? result : (result as readonly unknown[])[0];
      results.set(address, outcome as RunOutcome<Awaited<Result>, Place, Errors>);
    }
    return results;
  }
}

function resultOf(address: string, name: string, reply: RunReply): unknown[] | Error {
  const { results, error } = reply;
  if (results === undefined) {
    const message = `"${name}" was not run on ${address}: ${error ?? 'it answered nothing'}`;
    return new YardmasterError('ERR_TIMEOUT', message, { worker: address });
  }
  const failed = results.find((result) => result.error !== undefined)?.error;
  if (failed !== undefined) {
    return new RemoteError({ ...failed, data: { ...failed.data, worker: address } });
  }
  return results.map(({ value }) => deserialise(value as Uint8Array));
}
