import { comparable, type ComparableMessages, ownToClients, ownToWorkers } from './messages.ts';
import type { CaseResult } from './report.ts';
import { ExpectedState } from './snapshot.ts';
import type {
  Trace,
  TraceExpectation,
  TraceMessage,
  TraceMessages,
  TraceStimulus,
} from './trace-format.ts';
import { TraceKernel } from './trace-kernel.ts';

/**
 * Replays a trace and compares state and messages after each step, as far as the recording does not
 * depend on the order of Python's sets: our workers are ordered by address, as in the recording.
 */
export function runTrace(trace: Trace): CaseResult {
  const { id, config, stimuli, expected } = trace;
  const compared = comparedSteps(trace);
  const kernel = new TraceKernel(config);
  const state = new ExpectedState();
  for (let step = 0; step < compared; step++) {
    const stimulus = stimuli[step] as TraceStimulus;
    // Where the recording ends in a defect of Dask, its last step may have leaked occupancy before.
    const isLeaky = step === stimuli.length - 1 && typeof trace.truncatedBecause === 'string';
    const failure = runStep(kernel, state, stimulus, expected[step] as TraceExpectation, isLeaky);
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

function runStep(
  kernel: TraceKernel,
  state: ExpectedState,
  stimulus: TraceStimulus,
  expected: TraceExpectation,
  ignoreOccupancy: boolean,
): string | undefined {
  let outbox;
  try {
    outbox = kernel.apply(stimulus);
  } catch (error) {
    return `threw ${(error as Error).message}`;
  }
  const toClients = withoutRepeats(state, expected);
  return (
    state.difference(kernel.scope, ignoreOccupancy) ??
    compareMessages('to worker', exactly(expected.toWorkers), ownToWorkers(outbox)) ??
    compareMessages('to client', toClients, ownToClients(outbox))
  );
}

/** What may be sent, and what must be. */
interface News {
  readonly allowed: ComparableMessages;
  readonly required: ComparableMessages;
}

function exactly(messages: TraceMessages): News {
  const lines = comparable(messages);
  return { allowed: lines, required: lines };
}

/**
 * Dask tells clients again what they know, and of keys that they do not want. Required is what is
 * news: the key changed its state, or the client has begun to want it. Applies the changes of the step.
 */
function withoutRepeats(state: ExpectedState, { after, toClients }: TraceExpectation): News {
  const changed = Object.keys(after.tasks ?? {});
  const before = new Map(changed.map((key) => [key, state.task(key)]));
  state.apply(after);
  const isNews = (client: string, { op, key }: TraceMessage): boolean => {
    if (op !== 'key-in-memory' && op !== 'task-erred') return true;
    const now = state.task(key as string);
    if (!before.has(key as string) || now?.whoWants.includes(client) !== true) return false;
    const then = before.get(key as string);
    return then?.state !== now.state || !then.whoWants.includes(client);
  };
  const required = Object.entries(toClients).map(
    ([client, list]) => [client, list.filter((message) => isNews(client, message))] as const,
  );
  return { allowed: comparable(toClients), required: comparable(Object.fromEntries(required)) };
}

function compareMessages(
  direction: string,
  { allowed, required }: News,
  actual: ComparableMessages,
): string | undefined {
  for (const receiver of new Set([...required.keys(), ...actual.keys()])) {
    const sent = actual.get(receiver) ?? [];
    const unexpected = surplus(sent, allowed.get(receiver) ?? []);
    if (unexpected !== undefined) return `${direction} ${receiver}: unexpected ${unexpected}`;
    const missing = surplus(required.get(receiver) ?? [], sent);
    if (missing !== undefined) return `${direction} ${receiver}: missing ${missing}`;
  }
  return undefined;
}

/** The first of these that is not among the others, each counted once. */
function surplus(these: Iterable<string>, others: readonly string[]): string | undefined {
  const left = [...others];
  for (const message of these) {
    const index = left.indexOf(message);
    if (index < 0) return message;
    left.splice(index, 1);
  }
  return undefined;
}
