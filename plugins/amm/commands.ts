import {
  MEMORY_MEASURES,
  type ParametersOf,
  type PluginContext,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import {
  AMOUNT,
  COPIES,
  COUNT,
  FLAG,
  parameters,
  TEXTS,
} from '../../core/api/command-parameters.ts';
import type { RebalanceRules } from '../../policies/amm/plan-rebalance.ts';
import { adaptiveTarget } from '../../policies/scaling/adaptive-target.ts';
import { workersToClose } from '../../policies/scaling/workers-to-close.ts';
import { findWorkers, type MovementScope } from './movement.ts';
import { Rebalancer } from './rebalance.ts';
import { replicateKeys } from './replication.ts';
import type { Retirements, RetireResult } from './retirement.ts';

/** By which workers can be chosen for closing. */
const TO_CLOSE = {
  n: COUNT,
  target: COUNT,
  minimum: COUNT,
  memoryRatio: AMOUNT,
  groupBy: { type: 'string', enum: ['address', 'host'] },
} as const;

const RETIRE = parameters({}, { workers: TEXTS, names: TEXTS, close: FLAG, ...TO_CLOSE });

const REBALANCE = parameters(
  {},
  {
    keys: TEXTS,
    workers: TEXTS,
    measure: { type: 'string', enum: MEMORY_MEASURES },
    senderMin: AMOUNT,
    recipientMax: AMOUNT,
    gap: AMOUNT,
  },
);

const REPLICATE = parameters(
  {},
  { keys: TEXTS, n: COPIES, workers: TEXTS, branchingFactor: COPIES, dropSurplus: FLAG },
);

/** Parameters by command. */
export const MOVEMENT_PARAMETERS = {
  retireWorkers: RETIRE,
  workersToClose: parameters({}, TO_CLOSE),
  adaptiveTarget: parameters({}, { targetDurationMs: AMOUNT }),
  rebalance: REBALANCE,
  replicate: REPLICATE,
};

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
  const declared = MOVEMENT_PARAMETERS;
  context.command('retireWorkers', declared.retireWorkers, (given) => {
    return retire(scope, retirements, given);
  });
  context.command('workersToClose', declared.workersToClose, (given) => {
    return closable(scope, given).map(({ address, name }) => ({ address, name }));
  });
  context.command('adaptiveTarget', declared.adaptiveTarget, ({ targetDurationMs = 5000 }) => {
    return adaptiveTarget(scope.cluster, Math.max(1, targetDurationMs) / 1000);
  });
  context.command('rebalance', declared.rebalance, ({ workers, keys, ...given }) => {
    const chosen = workers === undefined ? undefined : knownWorkers(scope, 'rebalance', workers);
    return rebalancer.rebalance({ ...rules, ...given }, chosen, keys);
  });
  context.command('replicate', declared.replicate, ({ keys = [], ...rest }) => {
    return replicateKeys(scope, { keys, ...rest });
  });
}

async function retire(
  scope: MovementScope,
  retirements: Retirements,
  { workers, names, close = true, ...toClose }: ParametersOf<typeof RETIRE>,
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
  const unknownWorkers = unknown.map((worker) => ({ worker, reason: 'unknown' as const }));
  return { retired, kept: [...kept, ...unknownWorkers] };
}

function closable(
  { cluster }: MovementScope,
  { groupBy = 'address', ...options }: ParametersOf<(typeof MOVEMENT_PARAMETERS)['workersToClose']>,
): WorkerView[] {
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
