import {
  courtesies,
  followsNewer,
  hasParted,
  newsAmong,
  preferringKeys,
  type Step,
} from './documented-differences.ts';
import { comparable, compareMessages, type News, ownToClients, ownToWorkers } from './messages.ts';
import type { CaseResult } from './report.ts';
import { ExpectedState, type RecordedTask } from './snapshot.ts';
import type {
  Trace,
  TraceConfig,
  TraceExpectation,
  TraceMessage,
  TraceMessages,
  TraceStimulus,
} from './trace-format.ts';
import { TraceKernel } from './trace-kernel.ts';

/** What a part adds to the replay of its traces. */
export interface ReplayRules<Kernel extends TraceKernel = TraceKernel> {
  readonly make: (config: TraceConfig) => Kernel;
  /** Compares what only this part records. Called before state and messages are compared. */
  readonly compare: (
    kernel: Kernel,
    stimulus: TraceStimulus,
    expected: TraceExpectation,
  ) => Replayed;
}

const PLAIN: ReplayRules = {
  make: (config) => new TraceKernel(config),
  compare: () => undefined,
};

/**
 * Replays a trace and compares state and messages after each step, as far as the recording does not
 * depend on the order of Python's sets: our workers are ordered by address, as in the recording.
 */
export function runTrace(trace: Trace): CaseResult {
  return runTraceBy(PLAIN, trace);
}

/** As {@link runTrace}, with what the part adds. */
export function runTraceBy<Kernel extends TraceKernel>(
  rules: ReplayRules<Kernel>,
  trace: Trace,
): CaseResult {
  const { id, config, stimuli, expected } = trace;
  const compared = comparedSteps(trace);
  const kernel = rules.make(config);
  const state = new ExpectedState();
  const preferring = new Set<string>();
  for (let step = 0; step < compared; step++) {
    const stimulus = stimuli[step] as TraceStimulus;
    // Where the recording ends in a defect of Dask, its last step may have leaked occupancy before.
    const isLeaky = step === stimuli.length - 1 && typeof trace.truncatedBecause === 'string';
    for (const key of preferringKeys(stimulus)) preferring.add(key);
    const replay: Replay<Kernel> = { kernel, state, preferring, ignoreOccupancy: isLeaky, rules };
    const failure = runStep(replay, stimulus, expected[step] as TraceExpectation);
    if (failure === PARTED) break;
    if (failure !== undefined) {
      return { id, failure: `step ${step} of ${compared} (${stimulus.op}): ${failure}` };
    }
  }
  return { id };
}

/**
 * Beyond these steps the recording depends on the order of Python's sets, or the newer Dask decides
 * otherwise about a task (which slot a queued task gets, say) and we follow the newer one.
 */
function comparedSteps({
  stimuli,
  strictPrefix,
  addressTieBreakPrefix,
  headDivergence,
}: Trace): number {
  const certain = Math.min(stimuli.length, Math.max(strictPrefix, addressTieBreakPrefix));
  const isAboutTasks = headDivergence?.diff?.['tasks'] !== undefined;
  return isAboutTasks ? Math.min(certain, headDivergence.step) : certain;
}

/** Traces of `random.jsonl` keep stimulus and expectation together. */
export function traceFromSteps(
  line: Omit<Trace, 'stimuli' | 'expected'> & {
    readonly steps: readonly (TraceExpectation & { readonly stimulus: TraceStimulus })[];
  },
): Trace {
  const { steps, ...rest } = line;
  return { ...rest, stimuli: steps.map((step) => step.stimulus), expected: steps };
}

interface Replay<Kernel extends TraceKernel> {
  readonly kernel: Kernel;
  readonly state: ExpectedState;
  /** Keys of tasks whose restrictions are only preferences. */
  readonly preferring: ReadonlySet<string>;
  readonly ignoreOccupancy: boolean;
  readonly rules: ReplayRules<Kernel>;
}

/** Not a failure: from here on the kernel does what it does on purpose, and nothing compares. */
export const PARTED = Symbol('parted');

/** What a comparison found: a difference, that the traces part here, or nothing. */
export type Replayed = string | typeof PARTED | undefined;

function runStep<Kernel extends TraceKernel>(
  { kernel, state, preferring, ignoreOccupancy, rules }: Replay<Kernel>,
  stimulus: TraceStimulus,
  expected: TraceExpectation,
): Replayed {
  let outbox;
  try {
    outbox = kernel.apply(stimulus);
  } catch (error) {
    return `threw ${(error as Error).message}`;
  }
  const changed = Object.keys(expected.after.tasks ?? {});
  const before = new Map(changed.map((key) => [key, state.task(key)]));
  state.apply(expected.after);
  const changes = changed.map((key) => ({
    key,
    from: before.get(key)?.state,
    to: state.task(key)?.state,
  }));
  if (hasParted(state, preferring)) return PARTED;
  if (followsNewer(changes, state, kernel.scope.cluster.tasks)) return PARTED;
  const ownPart = rules.compare(kernel, stimulus, expected);
  if (ownPart !== undefined) return ownPart;
  const toClients = newsToClients(before, state, stimulus, expected.toClients);
  return (
    state.difference(kernel.scope, ignoreOccupancy) ??
    compareMessages('to worker', exactly(expected.toWorkers), ownToWorkers(outbox)) ??
    compareMessages('to client', toClients, ownToClients(outbox))
  );
}

function exactly(messages: TraceMessages): News {
  const lines = comparable(messages);
  return { allowed: lines, required: lines };
}

/** The messages that clients must get, and those that they may get. */
function newsToClients(
  before: ReadonlyMap<string, RecordedTask | undefined>,
  state: ExpectedState,
  stimulus: TraceStimulus,
  toClients: TraceMessages,
): News {
  const step: Step = {
    stimulus,
    wantedBefore: (client, key) => before.get(key)?.whoWants.includes(client) === true,
    isNewWish: (client, key) => {
      const now = state.task(key);
      if (!before.has(key) || now?.whoWants.includes(client) !== true) return false;
      const then = before.get(key);
      return then?.state !== now.state || !then.whoWants.includes(client);
    },
  };
  const allowed: Record<string, TraceMessage[]> = {};
  const required: Record<string, TraceMessage[]> = {};
  const sender = 'client' in stimulus ? [stimulus.client] : [];
  for (const client of new Set([...Object.keys(toClients), ...sender])) {
    const told = toClients[client] ?? [];
    allowed[client] = [...told, ...courtesies(stimulus, client)];
    required[client] = newsAmong(told, client, step);
  }
  return { allowed: comparable(allowed), required: comparable(required) };
}
