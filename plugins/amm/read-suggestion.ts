import {
  type ClusterView,
  type RefusalReason,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { original } from '../../core/shared/read-only.ts';
import type { WorkerLoads } from './worker-loads.ts';

/** A suggestion whose task and candidates belong to the cluster. */
export interface ReadSuggestion extends Suggestion {
  /** Without repetition. */
  readonly candidates: readonly WorkerView[] | undefined;
}

/** A suggestion that cannot be meant. */
export interface RefusedSuggestion {
  readonly suggestion: Suggestion;
  readonly reason: RefusalReason;
}

/** What may be a suggestion, or anything. */
type Unchecked = { readonly [Part in keyof Suggestion]?: unknown } | null | undefined;

/**
 * At most this many candidates more than twice the workers are read, so that an endless list ends.
 */
const CANDIDATES_MORE = 1024;

/**
 * What a policy yielded. In plain JavaScript the parts may also be written as an array, as in Dask:
 * `yield ['drop', task, [worker]]`. Candidates that are no workers of the cluster are passed over.
 * O(1) without candidates, else O(candidates).
 *
 * @throws YardmasterError `ERR_POLICY` when it is no suggestion at all, saying what it is instead
 */
export function readSuggestion(
  step: { readonly value?: unknown },
  cluster: ClusterView,
  loads: WorkerLoads,
): ReadSuggestion | RefusedSuggestion {
  const { value } = step;
  const unchecked = (Array.isArray(value) ? fromParts(value) : value) as Unchecked;
  const op = unchecked?.op;
  if (op !== 'replicate' && op !== 'drop') {
    throw new YardmasterError('ERR_POLICY', complaint(step), { op });
  }
  const given = unchecked as Suggestion;
  // A policy that is not part of this package names views.
  const own = original(given.task);
  const suggestion = own === given.task ? given : { ...given, task: own };
  const task = own as Partial<Suggestion['task']> | null | undefined;
  if (task?.key === undefined || !isKnown(task as TaskView, cluster)) {
    return { suggestion, reason: task?.state === undefined ? 'unknown-task' : stateReason(task) };
  }
  const candidates: unknown = suggestion.candidates;
  // Most suggestions have none.
  if (candidates === undefined) return suggestion as ReadSuggestion;
  if (candidates === null) return { ...suggestion, candidates: undefined };
  const workers = workersIn(candidates, cluster, loads);
  if (workers.length === 0) return { suggestion, reason: 'unknown-candidates' };
  return { ...suggestion, candidates: workers };
}

/**
 * Whether the task is the cluster's own. A copy is dropped of a task with several, so those are looked for
 * first, by identity: the look-up by key among all tasks would be a fifth of what a suggestion costs.
 */
function isKnown(task: TaskView, { replicated, tasks }: ClusterView): boolean {
  return replicated.has(task) || tasks.get(task.key) === task;
}

/** A task that the cluster has forgotten has no result; anything else with a state is no task of it. */
function stateReason({ state }: Partial<Suggestion['task']>): RefusalReason {
  return state === 'forgotten' ? 'not-in-memory' : 'unknown-task';
}

function workersIn(
  candidates: unknown,
  { workers }: ClusterView,
  loads: WorkerLoads,
): readonly WorkerView[] {
  const list = candidates as Partial<Iterable<unknown>>;
  // The characters of an address are no candidates.
  if (typeof candidates !== 'object' || typeof list[Symbol.iterator] !== 'function') return [];
  const found = new Set<WorkerView>();
  let left = 2 * workers.size + CANDIDATES_MORE;
  for (const candidate of list as Iterable<unknown>) {
    if (left-- === 0) break;
    if (typeof candidate !== 'object' || candidate === null) continue;
    const worker = original(candidate as WorkerView);
    if (loads.of(worker) !== undefined) found.add(worker);
  }
  return [...found];
}

function fromParts([op, task, candidates]: readonly unknown[]): Unchecked {
  return { op, task, candidates: candidates ?? undefined };
}

/** @throws YardmasterError `ERR_POLICY` when `run` is no generator */
export function checkGenerator(generator: unknown): asserts generator is SuggestionGenerator {
  if (typeof (generator as { next?: unknown } | null | undefined)?.next === 'function') return;
  const what = generator instanceof Promise ? 'a promise' : String(generator);
  throw new YardmasterError(
    'ERR_POLICY',
    `its run returns ${what} and no generator; write *run(), and yield suggestions`,
  );
}

function complaint(step: unknown): string {
  if (step instanceof Promise) {
    return 'its run is asynchronous; a round is one step of the scheduler, so write *run() without async';
  }
  const { value } = step as { readonly value?: unknown };
  const advice = 'yield replicate(task) or drop(task)';
  if (typeof value !== 'object' || value === null) {
    return `${String(value)} is not a suggestion; ${advice}`;
  }
  const { op } = (Array.isArray(value) ? fromParts(value) : value) as { readonly op?: unknown };
  return `"${String(op)}" is not a suggestion; ${advice}`;
}
