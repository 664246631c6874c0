import {
  type ActiveMemoryManagerPolicy,
  definePlugin,
  type LoadedExtension,
  MEMORY_MEASURES,
  type MemoryMeasure,
  PLUGIN_API_VERSION,
  type Timer,
  type UseEntry,
  YardmasterError,
} from '../core/api/index.ts';
import { KeepReplicas } from '../policies/amm/keep-replicas.ts';
import { addMovementCommands } from './amm/commands.ts';
import { MemoryManager } from './amm/memory-manager.ts';
import type { MovementScope } from './amm/movement.ts';
import { ReplicaBook } from './amm/replica-book.ts';
import { Retirements } from './amm/retirement.ts';

/** Options of the plugin `amm`; in a configuration they are `scheduler.activeMemoryManager`. */
export interface AmmOptions {
  /** Run rounds at the interval from the start. */
  readonly start: boolean;
  /** Milliseconds between rounds. */
  readonly intervalMs: number;
  /** By which workers are compared. */
  readonly measure: MemoryMeasure;
  readonly policies: readonly UseEntry[];
}

/**
 * The Active Memory Manager: at an interval it asks its policies which results to copy and which
 * copies to drop, and has the kernel do what is harmless of it.
 *
 * What was asked for on purpose (`replicas`) it makes and keeps whatever its policies are.
 *
 * Commands: `amm.start`, `amm.stop`, `amm.running`, `amm.runOnce`, and those that move data and
 * workers: `amm.retireWorkers`, `amm.rebalance`, `amm.replicate`, `amm.workersToClose`,
 * `amm.adaptiveTarget`.
 */
export default definePlugin<AmmOptions, readonly ActiveMemoryManagerPolicy<unknown>[]>({
  name: 'amm',
  apiVersion: PLUGIN_API_VERSION,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      start: { type: 'boolean', default: true },
      intervalMs: { type: 'number', minimum: 1, default: 2000 },
      measure: { type: 'string', enum: MEMORY_MEASURES, default: 'optimistic' },
      policies: {
        type: 'array',
        default: [{ use: 'reduce-replicas' }],
        items: {
          type: 'object',
          required: ['use'],
          additionalProperties: false,
          properties: { use: { extension: true }, options: { type: 'object' } },
        },
      },
    },
  },
  load: (loader, { policies: entries }) =>
    loader.loadAll({ entries, at: ['policies'], make: makePolicy }),
  setup(context, { start, intervalMs, measure }, policies) {
    const book = new ReplicaBook();
    const makeManager = (): MemoryManager =>
      new MemoryManager({
        cluster: () => context.cluster,
        measure,
        nowMs: () => context.clock.nowMs(),
        enact: (moves) => context.enqueue({ op: 'move-replicas', ...moves }),
        decisions: context.decisions,
        report: (error) => context.report(error),
        book,
      });
    const manager = makeManager();
    manager.policies.add(new KeepReplicas({}));
    for (const policy of policies) manager.policies.add(policy);

    let timer: Timer | undefined;
    const main = {
      manager,
      get isRunning() {
        return timer !== undefined;
      },
    };
    const scope: MovementScope = {
      clock: context.clock,
      get cluster() {
        return context.cluster;
      },
      signal: context.signal,
      enqueue: (stimulus) => context.enqueue(stimulus),
      makeManager,
    };
    const retirements = new Retirements(scope, main, intervalMs);
    const startTimer = (): boolean => {
      timer ??= context.every(intervalMs, () => void manager.runOnce());
      retirements.onManagerChange();
      return true;
    };
    const stopTimer = (): boolean => {
      timer?.cancel();
      timer = undefined;
      retirements.onManagerChange();
      return false;
    };
    addMovementCommands(context, scope, retirements);
    context.command('start', startTimer);
    context.command('stop', stopTimer);
    context.command('running', () => timer !== undefined);
    context.command('runOnce', () => manager.runOnce());
    return {
      start: () => {
        if (start) startTimer();
      },
      close: () => {
        stopTimer();
        retirements.close();
      },
    };
  },
});

/**
 * A class is made with its options; an instance is taken as it is.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
function makePolicy(loaded: LoadedExtension): ActiveMemoryManagerPolicy<unknown> {
  const { source, exported } = loaded;
  const instead = loaded.insteadOf('amm-policy');
  const made = instead === '' && exported !== undefined ? loaded.create() : undefined;
  const run: unknown = (made as { run?: unknown } | null | undefined)?.run;
  if (typeof run !== 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is no policy of the memory manager: it has no method run; extend ActiveMemoryManagerPolicy${instead}`,
      { source },
    );
  }
  if (run.constructor.name.startsWith('Async')) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `run of ${source} is asynchronous; a round is one step of the scheduler, so write *run(amm) without async`,
      { source },
    );
  }
  return made as ActiveMemoryManagerPolicy<unknown>;
}
