import {
  MEMORY_MEASURES,
  type MemoryMeasure,
  type PluginContext,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import type { RebalanceRules } from '../../policies/amm/plan-rebalance.ts';
import { adaptiveTarget } from '../../policies/scaling/adaptive-target.ts';
import { workersToClose } from '../../policies/scaling/workers-to-close.ts';
import { findWorkers, type MovementScope } from './movement.ts';
import { type Read, readParameters } from './parameters.ts';
import { Rebalancer } from './rebalance.ts';
import { replicateKeys } from './replication.ts';
import type { Retirements, RetireResult } from './retirement.ts';

/** By which workers can be chosen for closing. */
const TO_CLOSE = {
  n: 'count',
  target: 'count',
  minimum: 'count',
  memoryRatio: 'amount',
  groupBy: 'text',
} as const;

const RETIRE = { workers: 'texts', names: 'texts', close: 'flag', ...TO_CLOSE } as const;

const REBALANCE = {
  keys: 'texts',
  workers: 'texts',
  measure: 'text',
  senderMin: 'amount',
  recipientMax: 'amount',
  gap: 'amount',
} as const;

const REPLICATE = {
  keys: 'texts',
  n: 'copies',
  workers: 'texts',
  branchingFactor: 'copies',
  dropSurplus: 'flag',
} as const;

/**
 * The commands that move data and workers: `amm.retireWorkers`, `amm.rebalance`, `amm.replicate`,
 * `amm.workersToClose`, `amm.adaptiveTarget`.
 *
 * @param rules - of a rebalance whose call does not say
 */
export function addMovementCommands(
  context: PluginContext,
  scope: MovementScope,
  retirements: Retirements,
  rules: RebalanceRules,
): void {
  const rebalancer = new Rebalancer(scope);
  context.command('retireWorkers', (given) => {
    const parameters = readParameters('amm.retireWorkers', RETIRE, given);
    return retire(scope, retirements, parameters);
  });
  context.command('workersToClose', (given) => {
    const parameters = readParameters('amm.workersToClose', TO_CLOSE, given);
    return closable(scope, parameters).map(({ address, name }) => ({ address, name }));
  });
  context.command('adaptiveTarget', (given) => {
    const shape = { targetDurationMs: 'amount' } as const;
    const { targetDurationMs = 5000 } = readParameters('amm.adaptiveTarget', shape, given);
    return adaptiveTarget(scope.cluster, Math.max(1, targetDurationMs) / 1000);
  });
  context.command('rebalance', (given) => {
    const parameters = readParameters('amm.rebalance', REBALANCE, given);
    const { workers, keys } = parameters;
    const chosen = workers === undefined ? undefined : knownWorkers(scope, 'rebalance', workers);
    return rebalancer.rebalance(rulesOf(parameters, rules), chosen, keys);
  });
  context.command('replicate', (given) => {
    const { keys = [], ...rest } = readParameters('amm.replicate', REPLICATE, given);
    return replicateKeys(scope, { keys, ...rest });
  });
}

async function retire(
  scope: MovementScope,
  retirements: Retirements,
  { workers, names, close = true, ...toClose }: Read<typeof RETIRE>,
): Promise<RetireResult> {
  const ways = [workers, names, toClose.n ?? toClose.target].filter((way) => way !== undefined);
  if (ways.length > 1) {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      'retireWorkers takes workers, or names, or how many: give one of them',
      { command: 'amm.retireWorkers' },
    );
  }
  const wanted = workers ?? names;
  const { found, unknown } =
    wanted === undefined
      ? { found: closable(scope, toClose), unknown: [] }
      : findWorkers(scope.cluster, wanted, workers === undefined ? 'name' : 'any');
  const { retired, kept } = await retirements.retire(found, close);
  const strangers = unknown.map((worker) => ({ worker, reason: 'unknown' as const }));
  return { retired, kept: [...kept, ...strangers] };
}

function closable(
  { cluster }: MovementScope,
  { groupBy = 'address', ...options }: Read<typeof TO_CLOSE>,
): WorkerView[] {
  if (groupBy !== 'address' && groupBy !== 'host') {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `workers can be grouped by address or host, not by ${groupBy}`,
      { field: 'groupBy' },
    );
  }
  return workersToClose(cluster, { ...options, groupBy: (worker) => worker[groupBy] });
}

function knownWorkers(
  { cluster }: MovementScope,
  command: string,
  wanted: readonly string[],
): WorkerView[] {
  const { found, unknown } = findWorkers(cluster, wanted);
  if (unknown.length === 0) return found;
  throw new YardmasterError(
    'ERR_NO_WORKER',
    `${command}: there is no worker ${unknown.join(', ')}; see client.identity()`,
    { workers: unknown },
  );
}

function rulesOf(given: Read<typeof REBALANCE>, rules: RebalanceRules): RebalanceRules {
  const { measure = rules.measure } = given;
  if (!MEMORY_MEASURES.some((known) => known === measure)) {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `there is no measure "${measure}"; there are ${MEMORY_MEASURES.join(', ')}`,
      { field: 'measure' },
    );
  }
  const { senderMin, recipientMax, gap } = { ...rules, ...given };
  return { measure: measure as MemoryMeasure, senderMin, recipientMax, gap };
}
