import {
  AMM_POLICY_NAMES,
  type AmmPolicyInfo,
  type AmmStatus,
  MEMORY_MEASURES,
  type PluginContext,
  YardmasterError,
} from '../../core/api/index.ts';
import {
  AMOUNT,
  NO_PARAMETERS,
  OBJECT,
  parameters,
  TEXT,
} from '../../core/api/command-parameters.ts';
import type { ManagerControl } from './manager-control.ts';

/** Parameters by command. */
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
  context.command('start', declared.start, () => {
    control.start();
    return true;
  });
  context.command('stop', declared.stop, () => {
    control.stop();
    return false;
  });
  context.command('running', declared.running, () => control.running);
  context.command('runOnce', declared.runOnce, () => control.runOnce());
  context.command('status', declared.status, () => control.status);
  context.command('configure', declared.configure, ({ intervalMs, measure }): AmmStatus => {
    if (measure !== undefined) control.measure = measure;
    if (intervalMs !== undefined) control.intervalMs = intervalMs;
    return control.status;
  });
  context.command('addPolicy', declared.addPolicy, ({ use, options }): Promise<AmmPolicyInfo> => {
    return control.addPolicy(nameForClients(use, configured), options);
  });
  context.command('removePolicy', declared.removePolicy, ({ policy }) => {
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

/** What a client may name. */
function namesIn(configured: ReadonlySet<unknown>): string[] {
  const written = [...configured].filter((use) => typeof use === 'string');
  return [...new Set([...AMM_POLICY_NAMES, ...written])];
}

/** Dask's names of classes, and ours. */
const DASK_NAMES: ReadonlyMap<string, string> = new Map([
  ['ReduceReplicas', 'reduce-replicas'],
  ['RetireWorker', 'retire-worker'],
]);
