import type { ClusterView, TaskView } from '../../core/api/index.ts';

/**
 * Tasks are stolen in the order of what moving them costs, compared with what computing them takes.
 * Level 0: they need nothing. Each level above stands for twice the ratio of the one before, level 6
 * for a transfer that takes as long as the computation. Dask's `stealing.py`.
 */
export const LEVEL_COUNT = 15;

/** What every move of a task costs besides its bytes, in seconds. */
export const LATENCY_S = 0.1;

/** Level of ratio 1. */
const EVEN_LEVEL = 6;

/**
 * The level of a processing task; undefined when stealing it never pays. Does not look at where its
 * inputs are. O(dependencies).
 */
export function levelOf(task: TaskView, costs: ClusterView['costs']): number | undefined {
  const { dependencies } = task;
  if (dependencies.length === 0) return 0;
  const computeS = task.prefix.durationEstimateS;
  if (computeS <= 0) return undefined;
  let nbytes = 0;
  for (const dependency of dependencies) nbytes += nbytesOf(dependency, costs);
  const transferS = nbytes / costs.bandwidth + LATENCY_S;
  const level = roundHalfToEven(Math.log2(transferS / computeS) + EVEN_LEVEL);
  return level < LEVEL_COUNT ? Math.max(1, level) : undefined;
}

/** Bytes of a result, the default while they are unknown. */
export function nbytesOf({ nbytes }: TaskView, costs: ClusterView['costs']): number {
  return nbytes >= 0 ? nbytes : costs.defaultDataSize;
}

/** As Python rounds. */
function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
