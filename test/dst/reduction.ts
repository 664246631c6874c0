/** Less of what a seed draws: what remains is drawn as before. */

export interface Reduction {
  /** Tasks that are submitted at most. */
  readonly tasksMax?: number;
  /** Workers with which the cluster starts, at most. */
  readonly workersMax?: number;
  /** Numbers of the events, faults above all, that do not happen. */
  readonly without?: ReadonlySet<number>;
}

/** How much there is to reduce. */
export interface Size {
  readonly tasks: number;
  readonly workers: number;
  /** Events that were drawn, whether they happen or not. */
  readonly events: number;
}

/** A run that failed. */
export interface Failure {
  readonly problem: string;
  readonly summary: string;
  readonly size: Size;
}

/** The smallest reduction found with which a seed still fails. */
export interface Shrunk {
  readonly reduction: Reduction;
  readonly failure: Failure;
  readonly attempts: number;
}

/**
 * Looks for less that fails as well: without events, halves first, then with fewer tasks and workers, until nothing
 * smaller fails or the attempts are used up. Any failure counts, since the first one may be a consequence.
 * @param run - undefined when all is well
 */
export async function shrink(
  failure: Failure,
  run: (reduction: Reduction) => Promise<Failure | undefined>,
  attemptsMax = 100,
): Promise<Shrunk> {
  let best: Shrunk = { reduction: {}, failure, attempts: 0 };
  let attempts = 0;
  const tryOut = async (reduction: Reduction): Promise<boolean> => {
    if (attempts >= attemptsMax) return false;
    attempts++;
    const found = await run(reduction);
    if (found !== undefined) best = { reduction, failure: found, attempts };
    return found !== undefined;
  };
  for (let isSmaller = true; isSmaller && attempts < attemptsMax;) {
    const { reduction: before } = best;
    await dropEvents(failure.size.events, () => best.reduction, tryOut);
    await lower(
      'tasksMax',
      () => best.failure.size.tasks,
      () => best.reduction,
      tryOut,
    );
    await lower(
      'workersMax',
      () => best.failure.size.workers,
      () => best.reduction,
      tryOut,
    );
    isSmaller = best.reduction !== before;
  }
  return { ...best, attempts };
}

type TryOut = (reduction: Reduction) => Promise<boolean>;

/** In chunks of half of the events, then of a quarter, and so on. */
async function dropEvents(count: number, current: () => Reduction, tryOut: TryOut): Promise<void> {
  for (let chunk = count; chunk >= 1; chunk = Math.floor(chunk / 2)) {
    const present = Array.from({ length: count }, (_, number) => number).filter(
      (number) => current().without?.has(number) !== true,
    );
    for (let at = 0; at < present.length; at += chunk) {
      const without = new Set([...(current().without ?? []), ...present.slice(at, at + chunk)]);
      await tryOut({ ...current(), without });
    }
  }
}

/** By bisection, as if what is larger than something that fails would fail as well. */
async function lower(
  name: 'tasksMax' | 'workersMax',
  size: () => number,
  current: () => Reduction,
  tryOut: TryOut,
): Promise<void> {
  for (let low = 1, high = size(); low < high;) {
    const middle = Math.floor((low + high) / 2);
    if (await tryOut({ ...current(), [name]: middle })) high = middle;
    else low = middle + 1;
  }
}

/** The flags that repeat it. */
export function flagsOf({ tasksMax, workersMax, without }: Reduction): string {
  return [
    ...(tasksMax === undefined ? [] : [`--tasks ${tasksMax}`]),
    ...(workersMax === undefined ? [] : [`--workers ${workersMax}`]),
    ...(without === undefined || without.size === 0
      ? []
      : [`--without ${[...without].sort((one, other) => one - other).join(',')}`]),
  ].join(' ');
}

/** @param flag - the value of a flag by its name */
export function reductionOf(flag: (name: string) => string | undefined): Reduction {
  const tasks = flag('tasks');
  const workers = flag('workers');
  const without = flag('without');
  return {
    ...(tasks === undefined ? {} : { tasksMax: Number(tasks) }),
    ...(workers === undefined ? {} : { workersMax: Number(workers) }),
    ...(without === undefined ? {} : { without: new Set(without.split(',').map(Number)) }),
  };
}
