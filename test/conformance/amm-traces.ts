import { AmmKernel, type AmmReport, type JudgedSuggestion } from './amm-kernel.ts';
import { PARTED, type Replayed, runTraceBy } from './decide-traces.ts';
import type { CaseResult } from './report.ts';
import type { AmmExpectation, Trace, TraceExpectation, TraceStimulus } from './trace-format.ts';

/** From this many waiters on, the newer Dask counts them without examining their workers. */
const MANY_WAITERS = 20;

/** Replays a trace with rounds of the memory manager and rebalances among its stimuli. */
export function runAmmTrace(trace: Trace): CaseResult {
  return runTraceBy({ make: (config) => new AmmKernel(config), compare: compareRound }, trace);
}

function compareRound(
  kernel: AmmKernel,
  stimulus: TraceStimulus,
  expected: TraceExpectation,
): Replayed {
  if (stimulus.op === 'rebalance') return compareRebalance(kernel, expected);
  if (stimulus.op !== 'ammRun' || kernel.report === undefined) return undefined;
  const { suggestions = [], workersMemoryBefore = {}, retire = {} } = expected as AmmExpectation;
  const difference =
    different('workersMemoryBefore', workersMemoryBefore, kernel.report.workersMemoryBefore) ??
    compareSuggestions(suggestions, kernel.report.suggestions) ??
    different('retire', retire, kernel.report.retire);
  if (difference === undefined) return undefined;
  const reduces = stimulus.policies.some(({ type }) => type === 'reduceReplicas');
  return reduces && followsNewerCount(kernel, suggestions, kernel.report) ? PARTED : difference;
}

/** The same question may have several right answers; after another one nothing compares. */
function compareSuggestions(
  expected: readonly (JudgedSuggestion & { readonly anyOf?: readonly string[] })[],
  actual: readonly JudgedSuggestion[],
): Replayed {
  for (const [index, suggestion] of expected.entries()) {
    const { anyOf, ...rest } = suggestion;
    const own = actual[index];
    const isOtherRight =
      own?.worker !== rest.worker &&
      anyOf?.includes(own?.worker ?? '') === true &&
      JSON.stringify({ ...own, worker: null }) === JSON.stringify({ ...rest, worker: null });
    if (isOtherRight) return PARTED;
    const difference = different(`suggestion ${index}`, rest, own);
    if (difference !== undefined) return difference;
  }
  return different('number of suggestions', expected.length, actual.length);
}

/** Where tasks have many waiters, both counts are right, as long as ours is the newer one. */
function followsNewerCount(
  { kernel: { cluster } }: AmmKernel,
  expected: readonly JudgedSuggestion[],
  { suggestions }: AmmReport,
): boolean {
  const keys = [...new Set([...expected, ...suggestions].map(({ key }) => key))];
  const many = keys.filter((key) => (cluster.tasks.get(key)?.waiterCount ?? 0) >= MANY_WAITERS);
  if (many.length === 0) return false;
  const ofOthers = (list: readonly JudgedSuggestion[]): string =>
    JSON.stringify(list.filter(({ key }) => !many.includes(key)).map(({ op, key }) => [op, key]));
  // A task whose waiters are counted without examining workers loses no copy while there are fewer
  // copies.
  const keepsEnough = many.every((key) => {
    const task = cluster.tasks.get(key);
    const dropped = suggestions.filter((own) => own.key === key && own.accepted).length;
    return dropped === 0 || (task?.whoHas.size ?? 0) >= (task?.waiterCount ?? 0);
  });
  return keepsEnough && ofOthers(expected) === ofOthers(suggestions);
}

/** Python orders equal workers by their place in memory, so the pairs say nothing. */
function compareRebalance({ rebalanced }: AmmKernel, expected: TraceExpectation): Replayed {
  const { moves = [], nbytesAfterMoves = {} } = expected as AmmExpectation;
  const sorted = (amounts: Readonly<Record<string, number>> = {}): number[] =>
    Object.values(amounts).sort((a, b) => a - b);
  return (
    different('number of moves', moves.length, rebalanced?.moveCount) ??
    different('nbytesAfterMoves', sorted(nbytesAfterMoves), sorted(rebalanced?.nbytesAfterMoves))
  );
}

function different(what: string, expected: unknown, actual: unknown): string | undefined {
  const [theirs, ours] = [canonical(expected), canonical(actual)];
  return theirs === ours ? undefined : `${what} is ${ours} instead of ${theirs}`;
}

function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
