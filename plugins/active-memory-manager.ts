import {
  ACTIVE_MEMORY_MANAGER,
  type ActiveMemoryManagerPolicy,
  AMM_POLICY_NAMES,
  BRIDGE,
  definePlugin,
  type LoadedExtension,
  type Retirement,
  YardmasterError,
} from '../core/api/index.ts';
import { AMM_OPTIONS } from './amm/settings.ts';
import { trust } from '../core/shared/read-only.ts';
import { optionsSchema } from '../core/shared/settings.ts';
import { KeepReplicas } from '../policies/amm/keep-replicas.ts';
import { RetireWorker } from '../policies/amm/retire-worker.ts';
import { addManagerCommands, addMovementCommands } from './amm/commands.ts';
import { makePolicy, MemoryManager, ReplicaBook } from './amm/memory-manager.ts';
import { ManagerControl } from './amm/manager-control.ts';
import { type MovementScope, Retirements } from './amm/movement.ts';

for (const policy of [KeepReplicas, RetireWorker]) trust(policy);

interface ConfiguredPolicy {
  readonly policy: ActiveMemoryManagerPolicy<unknown>;
  readonly options: Readonly<Record<string, unknown>>;
}

/**
 * The Active Memory Manager: at an interval it asks its policies which results to copy and which
 * copies to drop, and has the kernel do what is harmless of it.
 *
 * What was asked for on purpose (`replicas`) it makes and keeps whatever its policies are.
 *
 * Service for other plugins: {@link ACTIVE_MEMORY_MANAGER}. Commands: see `addManagerCommands` and
 * `addMovementCommands`.
 */
export default definePlugin({
  name: 'amm',
  apiVersion: 1,
  optionsSchema: optionsSchema(AMM_OPTIONS),
  load: (loader, { policies: entries }) =>
    loader.loadAll({ entries, at: ['policies'], known: AMM_POLICY_NAMES, make: configuredPolicy }),
  setup(context, { start, policies: entries, rebalance, ...initial }, policies) {
    const { decisions, judge, timed } = context.get(BRIDGE);
    const settings = { intervalMs: initial.intervalMs, measure: initial.measure };
    const book = new ReplicaBook();
    const makeManager = (): MemoryManager =>
      new MemoryManager({
        cluster: () => context.cluster,
        get measure() {
          return settings.measure;
        },
        get intervalMs() {
          return settings.intervalMs;
        },
        nowMs: () => context.clock.nowMs(),
        enact: (moves) => context.enqueue({ op: 'move-replicas', ...moves }),
        decisions,
        judge,
        timed,
        book,
      });
    const manager = makeManager();
    const control: ManagerControl = new ManagerControl(
      context,
      manager,
      settings,
      new KeepReplicas({}),
      () => retirements.onManagerChange(),
      async (worker): Promise<Retirement> => {
        if (context.cluster.workers.get(worker.address) !== worker) return 'unknown';
        const { kept } = await retirements.retire([worker], true);
        return kept[0]?.reason ?? 'retired';
      },
    );
    for (const [index, { policy, options }] of policies.entries()) {
      control.adopt(policy, entries[index]?.use, options);
    }
    const scope: MovementScope = {
      clock: context.clock,
      get cluster() {
        return context.cluster;
      },
      signal: context.signal,
      enqueue: (stimulus) => context.enqueue(stimulus),
      makeManager,
    };
    const main = {
      manager,
      get isRunning() {
        return control.running;
      },
    };
    const retirements: Retirements = new Retirements(scope, main, () => settings.intervalMs);
    const { senderRecipientGap: gap, ...rules } = rebalance;
    addMovementCommands(context, scope, retirements, { gap, ...rules });
    addManagerCommands(context, control, new Set(entries.map(({ use }) => use)));
    context.provide(ACTIVE_MEMORY_MANAGER, control);
    return {
      start: () => {
        if (start) control.start();
      },
      close: () => {
        control.stop();
        retirements.close();
      },
    };
  },
});

/** @throws YardmasterError `ERR_PLUGIN_LOAD`; `ERR_CONFIG` for the policy `retire-worker` */
function configuredPolicy(loaded: LoadedExtension): ConfiguredPolicy {
  const policy = makePolicy(loaded);
  if (!(policy instanceof RetireWorker)) return { policy, options: loaded.options };
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    'the policy retire-worker does not belong in a configuration: retireWorkers adds it, one for each worker that leaves, and it leaves by itself; remove it',
    { policy: 'retire-worker' },
  );
}
