import type { MemoryMeasure } from '../state/worker.ts';
import type { Clock } from './clock.ts';
import {
  type ApiVersion,
  checkDefinition,
  MISSING_VERSION,
  NO_PARAMETERS,
  type NoOptions,
  type OptionsOf,
} from './definition.ts';
import { briefly, YardmasterError } from './errors.ts';
import type { Logger } from './plugin.ts';
import type { ClusterView, FewMembers, TaskView, WorkerView } from './views.ts';

/** Make one more copy, or drop one. A suggestion may be refused; it never does harm. */
export interface Suggestion {
  readonly op: 'replicate' | 'drop';
  readonly task: TaskView;
  /** Workers to choose from; undefined: all. What is no worker of the cluster is passed over. */
  readonly candidates: Iterable<WorkerView> | undefined;
  /** Drops a copy even when fewer are left than were asked for on purpose (`replicas`). */
  readonly force?: boolean;
  /** Asks for one more copy than there are with those under way. Default: than `whoHas` has. */
  readonly beyondPending?: boolean;
}

/**
 * Suggests one more copy, on the candidate with the least memory in use that has none and is running.
 * A copy that was asked for in an earlier round and is still under way counts first: then its worker
 * is the answer, and nothing new is asked for. So a policy may count by `whoHas` however slow the
 * network is. One that counts by `amm.copies(task)` sets `beyondPending`.
 *
 * Refused: the task is not in memory, is an actor, or no candidate is left.
 */
export function replicate(
  task: TaskView,
  candidates?: Iterable<WorkerView>,
  options?: { readonly beyondPending?: boolean },
): Suggestion {
  return { op: 'replicate', task, candidates, beyondPending: options?.beyondPending };
}

/**
 * Suggests to drop one copy, from the candidate with the most memory in use.
 * Refused: it would be the last copy, an actor, fewer than were asked for on purpose (`replicas`;
 * `force` allows it), or every candidate needs it for a running task.
 */
export function drop(
  task: TaskView,
  candidates?: Iterable<WorkerView>,
  options?: { readonly force?: boolean },
): Suggestion {
  return { op: 'drop', task, candidates, force: options?.force };
}

/** The generator that `*run()` returns: it yields suggestions and receives the chosen worker, or undefined. */
export type SuggestionGenerator = Generator<Suggestion, void, WorkerView | undefined>;

/** The pending changes to the copies of a task. */
export interface PendingReplicas {
  /** Will receive one: accepted in this round, or asked for in an earlier one and still under way. */
  readonly replicate: FewMembers<WorkerView>;
  /** Will lose one: accepted in this round. */
  readonly drop: FewMembers<WorkerView>;
}

/** The reason why a suggestion was refused. */
export type RefusalReason =
  /** It is about no task of the cluster. */
  | 'unknown-task'
  /** Candidates are given, and all of them are unknown in the cluster. */
  | 'unknown-candidates'
  /** There is no result to copy or to drop. */
  | 'not-in-memory'
  /** An actor is neither copied nor dropped. */
  | 'actor'
  /** No candidate runs: all are paused or leaving. */
  | 'not-running'
  /** Every candidate that runs has a copy or gets one. */
  | 'no-recipient'
  /** No candidate has a copy, or all of theirs are dropped already. */
  | 'no-holder'
  /** One copy always stays. */
  | 'last-copy'
  /** Fewer copies would be left than were asked for on purpose. */
  | 'replicas-wanted'
  /** A task that reads the copy is processing on each candidate. */
  | 'in-use'
  /** The others are on workers that leave and are busy with it. */
  | 'last-running-copy';

/** Suggestions of a round that were refused for one reason. */
export interface AmmRefusals {
  readonly reason: RefusalReason;
  readonly count: number;
  /** The first of them in words. */
  readonly example: string;
}

/** A policy that did not come to its end in a round. */
export interface AmmPolicyFailure {
  /** Name of its class. */
  readonly policy: string;
  readonly message: string;
}

/** The outcome of a round: `suggested` is the sum of `accepted`, `underWay` and `refused`. */
export interface AmmRound {
  /** Suggestions that policies made. */
  readonly suggested: number;
  /** The number of suggestions that were accepted. */
  readonly accepted: number;
  /** Copies that were asked for in an earlier round and have not arrived. */
  readonly underWay: number;
  readonly refused: number;
  /** The reasons of refusals, the most frequent one first. */
  readonly refusals: readonly AmmRefusals[];
  /** Policies that crashed or were stopped. What they had suggested before counts. */
  readonly failures: readonly AmmPolicyFailure[];
}

/** The copies and drops that the manager has ordered because a policy suggested them, since it began. */
export interface AmmMoves {
  /** The name of its class. */
  readonly policy: string;
  readonly copies: number;
  readonly copiedBytes: number;
  readonly drops: number;
  readonly droppedBytes: number;
}

/** Which workers the cluster can best do without. Default: idle ones, as with a `memoryRatio` of 2. */
export interface ClosableWorkers {
  /** Close this many workers, busy ones if there are not enough idle ones. */
  readonly n?: number;
  /** Close workers until this many remain. */
  readonly target?: number;
  /**
   * Close idle workers while the memory of the others is at least this many times the stored bytes.
   */
  readonly memoryRatio?: number;
  /** Leave at least this many workers. Default 0. */
  readonly minimum?: number;
  /** Workers with the same key go together: all of them, or none. Default: each by itself. */
  readonly key?: (worker: WorkerView) => string;
}

/**
 * The outcome of the retirement of a worker: its data was moved away and it left; or it works on
 * as before, because no other worker can take what it holds, it holds an actor, or nothing moved for a
 * minute (`stalled`); or it left by itself before, or was no worker of the cluster any more (`unknown`).
 */
export type Retirement = 'retired' | 'no-recipients' | 'stalled' | 'left' | 'unknown';

/** The manager, as the policies that it runs see it. */
export interface AmmView {
  /** The scheduler's state, read-only. */
  readonly cluster: ClusterView;
  /** The same under its documented name. */
  readonly scheduler: ClusterView;
  /** Bytes by worker, with the effects of all that is pending. Empty between rounds. */
  readonly workersMemory: ReadonlyMap<WorkerView, number>;
  /** The suggestions that were accepted in this round, and those still under way. Empty between rounds. */
  readonly pending: ReadonlyMap<TaskView, PendingReplicas>;
  /** All policies of the manager; a policy leaves with `policies.delete(this)`. */
  readonly policies: Set<ActiveMemoryManagerPolicy<unknown>>;
  /** Milliseconds between rounds. */
  readonly intervalMs: number;
  /** By which workers are compared. */
  readonly measure: MemoryMeasure;
  /** Copies of a result: those that there are and those under way, less those that are about to go. */
  copies(task: TaskView): number;
  /** True when it runs at its interval. */
  readonly running: boolean;
  /** Runs rounds at its interval. No-op when it runs. */
  start(): void;
  /** No more rounds at the interval. A round that is running comes to its end. */
  stop(): void;
  /**
   * One round now, whether it is started or not. A policy calls it between rounds, from a timer of
   * {@link clock} say.
   * @throws YardmasterError `ERR_POLICY` from within a round
   */
  runOnce(): AmmRound;
  /** The scheduler's time, which is virtual in a simulation. */
  readonly clock: Clock;
  /** Writes to the scheduler's log, with the name of the plugin `amm`. */
  readonly log: Logger;
  /** The workers that `retire` would cost least. O(workers log workers). */
  workersToClose(options?: ClosableWorkers): readonly WorkerView[];
  /**
   * Retires a worker: from the end of the present round on it gets no new tasks, its data is moved to
   * others, and then it is closed. A worker that is being retired already is not retired twice.
   * @returns what became of it, after many rounds; need not be awaited
   * @throws YardmasterError `ERR_CLOSED` when the scheduler closes before
   */
  retire(worker: WorkerView): Promise<Retirement>;
}

/**
 * A policy of the Active Memory Manager. Extend it, take your options, and yield suggestions.
 *
 * It can be tested without a scheduler: `[...policy.run(view)]` with any object for the view.
 *
 * @typeParam Options - what the config file gives; described by a static `optionsSchema`
 */
export abstract class ActiveMemoryManagerPolicy<Options = Record<string, never>> {
  /** Distinguishes it from plugins and other policies wherever it is named. */
  static readonly kind = 'amm-policy';

  /** The version of the contract that it was written for. Default 1. */
  static readonly apiVersion: ApiVersion | undefined;

  /** JSON schema of the options, checked before the constructor runs. */
  static readonly optionsSchema: object | undefined;

  /** The manager that this policy was added to. */
  manager!: AmmView;

  constructor(readonly options: Options) {}

  /** Called once a round. It may end at any `yield`, so clean up in `finally`. */
  abstract run(amm: AmmView): SuggestionGenerator;
}

/** A policy class, as the manager is given it. */
export interface AmmPolicyClass {
  readonly optionsSchema?: object;
  new (options: never): ActiveMemoryManagerPolicy<unknown>;
}

/** A policy as a function, for small ones. */
export interface AmmPolicyFunction<Schema extends object> {
  readonly name: string;
  readonly apiVersion: ApiVersion;
  /** JSON schema of the options. */
  readonly optionsSchema?: Schema;
  /** As `run` of the class; `this` is the policy, so `amm.policies.delete(this)` leaves. */
  run(
    this: ActiveMemoryManagerPolicy<OptionsOf<Schema>>,
    amm: AmmView,
    options: OptionsOf<Schema>,
  ): SuggestionGenerator;
}

/**
 * A policy class made of one function; `yield` is typed without any annotation.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition lacks its name or `run`
 */
export function defineAmmPolicy<const Schema extends object = NoOptions>(
  definition: AmmPolicyFunction<Schema>,
): new (options: OptionsOf<Schema>) => ActiveMemoryManagerPolicy<OptionsOf<Schema>> {
  checkDefinition(
    'defineAmmPolicy',
    definition,
    '{ name, apiVersion: 1, *run(amm, options) { … } }',
  );
  const { name, apiVersion } = definition as Partial<typeof definition>;
  const { optionsSchema = NO_PARAMETERS } = definition;
  const problems = [
    ...problemsWithName(name),
    ...(apiVersion === undefined ? [MISSING_VERSION] : []),
    ...problemsWithRun(definition),
  ];
  if (problems.length > 0) {
    const shown = typeof name === 'string' && name !== '' ? `policy ${name}` : 'policy';
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `defineAmmPolicy: the definition of the ${shown} is not right: ${problems.join('; ')}`,
      { problems },
    );
  }
  class FunctionPolicy extends ActiveMemoryManagerPolicy<OptionsOf<Schema>> {
    static override readonly apiVersion = apiVersion;
    static override readonly optionsSchema = optionsSchema;

    override run(amm: AmmView): SuggestionGenerator {
      return definition.run.call(this, amm, this.options);
    }
  }
  Object.defineProperty(FunctionPolicy, 'name', { value: name });
  return FunctionPolicy;
}

function problemsWithName(name: unknown): string[] {
  return typeof name === 'string' && name !== ''
    ? []
    : [`name must be text that is not empty (got ${briefly(name)})`];
}

function problemsWithRun({ run }: { readonly run: unknown }): string[] {
  const wanted = 'run must be a generator function, *run(amm, options) { … }';
  if (typeof run !== 'function') return [`${wanted} (got ${briefly(run)})`];
  return run.constructor.name.startsWith('Async') ? [`${wanted}, without async`] : [];
}
