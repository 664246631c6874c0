import {
  AMM_POLICY_NAMES,
  type AmmPolicyInfo,
  type AmmStatus,
  type MemoryMeasure,
  type PluginContext,
  YardmasterError,
} from '../../core/api/index.ts';
import type { ManagerControl } from './manager-control.ts';
import { readParameters } from './parameters.ts';

const ADD = { use: 'text', options: 'data' } as const;
const REMOVE = { policy: 'text' } as const;
const CONFIGURE = { intervalMs: 'amount', measure: 'text' } as const;

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
  context.command('start', () => {
    control.start();
    return true;
  });
  context.command('stop', () => {
    control.stop();
    return false;
  });
  context.command('running', () => control.running);
  context.command('runOnce', () => control.runOnce());
  context.command('status', () => control.status);
  context.command('configure', (given): AmmStatus => {
    const { intervalMs, measure } = readParameters('amm.configure', CONFIGURE, given);
    if (measure !== undefined) control.measure = measure as MemoryMeasure;
    if (intervalMs !== undefined) control.intervalMs = intervalMs;
    return control.status;
  });
  context.command('addPolicy', (given): Promise<AmmPolicyInfo> => {
    const { use = '', options } = readParameters('amm.addPolicy', ADD, given);
    const name = nameForClients(use, configured);
    return control.addPolicy(name, options as Readonly<Record<string, unknown>> | undefined);
  });
  context.command('removePolicy', (given) => {
    const { policy = '' } = readParameters('amm.removePolicy', REMOVE, given);
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
