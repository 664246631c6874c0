import type { TransitionDetails } from '../../core/api/hooks.ts';
import { settle, transition } from '../../core/kernel/transitions.ts';
import type { TaskStateName } from '../../core/state/state-names.ts';
import { withoutLostBeforeCancelled } from './documented-differences.ts';
import { comparable, compareMessages, ownToClients, ownToWorkers } from './messages.ts';
import type { CaseResult } from './report.ts';
import { ExpectedState } from './snapshot.ts';
import type { TraceChange, TraceConfig, TraceMessages, TraceStimulus } from './trace-format.ts';
import { TraceKernel } from './trace-kernel.ts';

/** One forced transition in a situation. */
export interface TransitionCase {
  readonly id: string;
  readonly start: TaskStateName;
  readonly finish: TaskStateName;
  readonly args: {
    readonly worker?: string;
    readonly nbytes?: number;
    readonly typename?: string;
    readonly duration?: number;
    readonly cause?: string;
    readonly exception?: string;
  };
  readonly config: TraceConfig;
  readonly direct: boolean;
  readonly setup: readonly TraceStimulus[];
  readonly before: TraceChange;
  readonly result: {
    readonly error?: string | null;
    readonly actualFinish?: string | null;
    readonly recommendations?: Readonly<Record<string, string>>;
    readonly afterSettling?: TraceChange;
    readonly stateValidAfterSettling?: boolean;
    readonly toWorkers?: TraceMessages;
    readonly toClients?: TraceMessages;
  };
}

/** Pairs that newer schedulers have directly, and the recorded one did not. */
const NEWER_PAIRS = new Set(['queued|erred', 'no-worker|erred', 'memory|erred']);

/** What is needed starts again at once in newer schedulers; the recorded one left it released. */
const REVISED_PAIRS = new Set(['no-worker|released']);

export function runTransitionCase(test: TransitionCase): CaseResult {
  const { id, start, finish, result } = test;
  const trace = new TraceKernel(test.config);
  for (const stimulus of test.setup) trace.apply(stimulus);
  const { scope } = trace;
  const before = new ExpectedState();
  before.apply(test.before);
  const unlike = before.difference(scope, false);
  if (unlike !== undefined) return { id, failure: `the situation differs: ${unlike}` };
  const task = scope.cluster.tasks.get('t');
  if (task === undefined && start !== 'forgotten') return { id, failure: 'task t is missing' };
  scope.outbox.clear();
  let refusal: string | undefined;
  try {
    if (task !== undefined) transition(scope, task, finish, details(test));
  } catch (error) {
    refusal = (error as Error).message;
  }
  if (typeof result.error === 'string') {
    return isRefused(test, refusal, task?.state, trace)
      ? { id }
      : {
          id,
          failure: `${start} -> ${finish} must be refused, and led to ${task?.state ?? 'nothing'}`,
        };
  }
  const pair = `${start}|${finish}`;
  // As a direct transition it needs a cause, and is refused without one.
  if (NEWER_PAIRS.has(pair) && refusal !== undefined && test.args.cause === undefined) {
    return { id };
  }
  if (refusal !== undefined) return { id, failure: `refused: ${refusal}` };
  if (NEWER_PAIRS.has(pair)) return checkNewerPair(test, trace);
  if (REVISED_PAIRS.has(pair)) return checkRevisedPair(test, trace, before);
  return compareOutcome(test, trace, task?.state ?? 'forgotten');
}

/** An error, or a step that visibly declines to go there. */
function isRefused(
  { start, finish }: TransitionCase,
  refusal: string | undefined,
  state: string | undefined,
  trace: TraceKernel,
): boolean {
  if (refusal !== undefined || state === start || state !== finish) return true;
  return NEWER_PAIRS.has(`${start}|${finish}`) && trace.scope.options.validate;
}

function compareOutcome(
  { id, result }: TransitionCase,
  trace: TraceKernel,
  reached: string,
): CaseResult {
  const wanted = result.actualFinish ?? reached;
  if (wanted !== reached) {
    return { id, failure: `reached ${reached} instead of ${wanted}` };
  }
  const { scope } = trace;
  settle(scope);
  // Where the recorder itself found the settled state invalid there is nothing to follow.
  if (result.afterSettling === undefined || result.stateValidAfterSettling === false) return { id };
  const after = new ExpectedState();
  after.apply(result.afterSettling);
  const toWorkers = comparable(result.toWorkers ?? {});
  const toClients = comparable(result.toClients ?? {});
  const news = comparable(withoutLostBeforeCancelled(result.toClients));
  const sentToWorkers = ownToWorkers(scope.outbox);
  const sentToClients = ownToClients(scope.outbox);
  const failure =
    after.difference(scope, false) ??
    compareMessages('to worker', { allowed: toWorkers, required: toWorkers }, sentToWorkers) ??
    compareMessages('to client', { allowed: toClients, required: news }, sentToClients);
  return failure === undefined ? { id } : { id, failure };
}

/** The recorded scheduler went through `released` here; only the end of the task can be compared. */
function checkNewerPair({ id, result }: TransitionCase, trace: TraceKernel): CaseResult {
  settle(trace.scope);
  const expected = result.afterSettling?.tasks?.['t'] as { state?: string } | null | undefined;
  const reached = trace.scope.cluster.tasks.get('t')?.state ?? 'forgotten';
  const wanted = expected?.state ?? 'forgotten';
  return reached === wanted ? { id } : { id, failure: `ended ${reached} instead of ${wanted}` };
}

/** The task is released and, needed as it was, gets back to where it was: nothing has changed. */
function checkRevisedPair(
  test: TransitionCase,
  trace: TraceKernel,
  before: ExpectedState,
): CaseResult {
  const task = trace.scope.cluster.tasks.get('t');
  if (task?.isNeeded !== true) return compareOutcome(test, trace, task?.state ?? 'forgotten');
  const { id, finish } = test;
  if (task.state !== finish) return { id, failure: `reached ${task.state} instead of ${finish}` };
  settle(trace.scope);
  const failure = before.difference(trace.scope, false);
  return failure === undefined ? { id } : { id, failure };
}

function details({ args }: TransitionCase): TransitionDetails {
  return {
    worker: args.worker,
    nbytes: args.nbytes,
    type: args.typename,
    ...(args.duration === undefined
      ? {}
      : { timings: [{ action: 'compute', startS: 0, stopS: args.duration }] }),
    ...(args.cause === undefined ? {} : { cause: args.cause }),
    ...(args.exception === undefined
      ? {}
      : {
          failure: {
            exception: args.exception,
            traceback: 'T',
            exceptionText: args.exception,
            tracebackText: 'T',
          },
        }),
  };
}
