import {
  AMM_POLICY_NAMES,
  type AmmPolicyInfo,
  type AmmStatus,
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
  NO_PARAMETERS,
  OBJECT,
  parameters,
  TEXT,
  TEXTS,
} from '../../core/api/definition.ts';
import type { RebalanceRules } from '../../policies/amm/balance-memory.ts';
import { adaptiveTarget, workersToClose } from '../../policies/scaling/adaptive.ts';
import type { ManagerControl } from './manager-control.ts';
import {
  findWorkers,
  type MovementScope,
  Rebalancer,
  replicateKeys,
  type Retirements,
  type RetireResult,
} from './movement.ts';

/** By which workers can be chosen for closing. */
const TO_CLOSE = {
  n: COUNT,
  target: COUNT,
  minimum: COUNT,
  memoryRatio: AMOUNT,
  key: { type: 'string', enum: ['address', 'host'] },
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

export const MOVEMENT_PARAMETERS = {
  retireWorkers: RETIRE,
  workersToClose: parameters({}, TO_CLOSE),
  adaptiveTarget: parameters({}, { targetDurationMs: AMOUNT }),
  rebalance: REBALANCE,
  replicate: REPLICATE,
};

/**
 * The commands that move data and workers: `amm.retireWorkers`, `amm.rebalance`, `amm.replicate`,
 * `amm.workersToClose`, `amm.adaptiveTarget`, and `amm.retireSelf`, by which a worker that closes has what only
 * it holds moved to others before.
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
  context.command('retireWorkers', { parameters: declared.retireWorkers }, (given) => {
    return retire(scope, retirements, given);
  });
  context.command(
    'retireSelf',
    { access: 'worker', parameters: NO_PARAMETERS },
    (_, { worker }) => {
      if (worker === undefined) throw onlyWorkers();
      return retire(scope, retirements, { workers: [worker], close: false });
    },
  );
  context.command('workersToClose', { parameters: declared.workersToClose }, (given) => {
    return closable(scope, given).map(({ address, name }) => ({ address, name }));
  });
  context.command(
    'adaptiveTarget',
    { parameters: declared.adaptiveTarget },
    ({ targetDurationMs = 5000 }) => {
      return adaptiveTarget(scope.cluster, Math.max(1, targetDurationMs) / 1000);
    },
  );
  context.command(
    'rebalance',
    { parameters: declared.rebalance },
    ({ workers, keys, ...given }) => {
      const chosen = workers === undefined ? undefined : knownWorkers(scope, 'rebalance', workers);
      return rebalancer.rebalance({ ...rules, ...given }, chosen, keys);
    },
  );
  context.command('replicate', { parameters: declared.replicate }, ({ keys = [], ...rest }) => {
    return replicateKeys(scope, { keys, ...rest });
  });
}

function onlyWorkers(): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    'retireSelf is for workers: retireWorkers takes the workers that shall leave',
    { command: 'amm.retireSelf' },
  );
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
  { key = 'address', ...options }: ParametersOf<(typeof MOVEMENT_PARAMETERS)['workersToClose']>,
): WorkerView[] {
  return workersToClose(cluster, { ...options, key: (worker) => worker[key] });
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

export const MANAGER_PARAMETERS = {
  start: NO_PARAMETERS,
  stop: NO_PARAMETERS,
  running: NO_PARAMETERS,
  runOnce: NO_PARAMETERS,
  status: NO_PARAMETERS,
  configure: parameters(
    {},
    { intervalMs: AMOUNT, measure: { type: 'string', enum: MEMORY_MEASURES } },
  ),
  addPolicy: parameters({ use: TEXT }, { options: OBJECT }),
  removePolicy: parameters({ policy: TEXT }),
};

/**
 * The commands that drive the manager: `amm.start`, `amm.stop`, `amm.running`, `amm.runOnce`,
 * `amm.status`, `amm.configure`, `amm.addPolicy`, `amm.removePolicy`.
 *
 * @param configured - what the configuration names: a client may name it, too
 */
export function addManagerCommands(
  context: PluginContext,
  control: ManagerControl,
  configured: ReadonlySet<unknown>,
): void {
  const declared = MANAGER_PARAMETERS;
  context.command('start', { parameters: declared.start }, () => {
    control.start();
    return true;
  });
  context.command('stop', { parameters: declared.stop }, () => {
    control.stop();
    return false;
  });
  context.command('running', { parameters: declared.running }, () => control.running);
  context.command('runOnce', { parameters: declared.runOnce }, () => control.runOnce());
  context.command('status', { parameters: declared.status }, () => control.status);
  context.command(
    'configure',
    { parameters: declared.configure },
    ({ intervalMs, measure }): AmmStatus => {
      if (measure !== undefined) control.measure = measure;
      if (intervalMs !== undefined) control.intervalMs = intervalMs;
      return control.status;
    },
  );
  context.command(
    'addPolicy',
    { parameters: declared.addPolicy },
    ({ use, options }): Promise<AmmPolicyInfo> => {
      return control.addPolicy(nameForClients(use, configured), options);
    },
  );
  context.command('removePolicy', { parameters: declared.removePolicy }, ({ policy }) => {
    return control.removePolicy(policy);
  });
}

/** A client must not make the scheduler load files of its choice. */
function nameForClients(use: string, configured: ReadonlySet<unknown>): string {
  const name = use.replace(/^distributed\.active_memory_manager\./, '');
  const ours = DASK_NAMES.get(name) ?? name;
  if (configured.has(use) || AMM_POLICY_NAMES.some((known) => known === ours)) {
    return configured.has(use) ? use : ours;
  }
  const advice =
    ours === 'retire-worker'
      ? 'it is added by retireWorkers, one for each worker that leaves'
      : `there are ${namesIn(configured).join(', ')}; ` +
        'name others in the configuration, or call scheduler.amm.addPolicy where the scheduler runs';
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `a client cannot add the policy "${use}" to the memory manager: ${advice}`,
    { use },
  );
}

/** The policies that a client may name. */
function namesIn(configured: ReadonlySet<unknown>): string[] {
  const written = [...configured].filter((use) => typeof use === 'string');
  return [...new Set([...AMM_POLICY_NAMES, ...written])];
}

/** Dask's names of classes, and ours. */
const DASK_NAMES: ReadonlyMap<string, string> = new Map([
  ['ReduceReplicas', 'reduce-replicas'],
  ['RetireWorker', 'retire-worker'],
]);
