/** The sections `scheduler.activeMemoryManager` and `scheduler.rebalance` of the configuration, also as Dask writes them. */
import { MEMORY_MEASURES } from '../../core/api/index.ts';
import { isExtension, type Problem, type Segment } from '../../core/shared/schema.ts';
import {
  camelCase,
  choice,
  type ConfigPart,
  duration,
  entry,
  flag,
  fraction,
  list,
  optionsOf,
  section,
  type Spelled,
  within,
} from '../../core/shared/settings.ts';
import { isPlainObject } from '../../core/util/values.ts';

const measure = (description: string) =>
  choice('Measure of memory', description, MEMORY_MEASURES, { default: 'optimistic' });

const ACTIVE_MEMORY_MANAGER_SCHEMA = section(
  'Active Memory Manager',
  'Copies and drops results between workers by the suggestions of its policies.',
  {
    start: flag(
      'Run at an interval from the start',
      'Otherwise rounds run on request: amm.start, amm.runOnce.',
      true,
    ),
    interval: duration('Time between rounds', 'Pause between two rounds.', {
      default: '2s',
      minimum: 1,
    }),
    measure: measure('By which workers are compared.'),
    policies: list(
      'Policies of the manager',
      "In the order in which they run. Dask's spelling works too: class: and options inline.",
      entry('policy'),
      [{ use: 'reduce-replicas' }],
    ),
  },
);

const REBALANCE_SCHEMA = section(
  'Rebalance',
  'What client.rebalance does where the call does not say. Fractions are of the memory limit of each worker.',
  {
    measure: measure('By which workers are compared with each other and with their mean.'),
    senderMin: fraction(
      'Least of a sender',
      'A worker that uses less of its limit gives nothing away.',
      0.3,
    ),
    recipientMax: fraction(
      'Most of a recipient',
      'A worker that uses more of its limit receives nothing.',
      0.6,
    ),
    senderRecipientGap: fraction(
      'Gap between senders and recipients',
      'Workers closer to the mean than half of this are left alone.',
      0.1,
    ),
  },
);

/** Options of the plugin. `rebalance`: what `amm.rebalance` does where the call does not say. */
export const AMM_OPTIONS = {
  properties: { ...ACTIVE_MEMORY_MANAGER_SCHEMA.properties, rebalance: REBALANCE_SCHEMA },
};

/** The settings of the Active Memory Manager. */
export const ammPart = {
  scheduler: { activeMemoryManager: ACTIVE_MEMORY_MANAGER_SCHEMA, rebalance: REBALANCE_SCHEMA },
  spell: (written) => spelled(written),
  plugin: ({ activeMemoryManager, rebalance }) => ({
    use: 'amm',
    section: 'activeMemoryManager',
    options: optionsOf(AMM_OPTIONS, { ...(activeMemoryManager as object), rebalance }),
  }),
} as const satisfies ConfigPart;

/** From Dask's places and spelling: policies by `class:` with the options inline, measures such as `managed_in_memory`. */
function spelled(written: unknown): Spelled {
  const problems: Problem[] = [];
  const value = within(moved(written, problems), 'scheduler', (scheduler) => {
    const measured = within(scheduler, 'rebalance', (rules) => {
      return within(rules, 'measure', daskMeasure);
    });
    return within(measured, 'activeMemoryManager', (manager) =>
      within(within(manager, 'measure', daskMeasure), 'policies', (items) =>
        Array.isArray(items) ? items.map((item, index) => policy(item, index, problems)) : items,
      ),
    );
  });
  return { value, problems };
}

/** The keys that Dask has in `worker.memory` though the scheduler reads them, and we in `scheduler`. */
const MOVED = ['rebalance', 'recentToOldTime'] as const;

/**
 * Moves Dask's `worker.memory.rebalance` and `worker.memory.recent-to-old-time` to the section
 * `scheduler`, with keys in camel case.
 */
function moved(root: unknown, problems: Problem[]): unknown {
  const { worker, scheduler = {} } = isPlainObject(root) ? root : {};
  const memory = isPlainObject(worker) ? worker['memory'] : undefined;
  if (!isPlainObject(root) || !isPlainObject(worker) || !isPlainObject(memory)) return root;
  const kept: Record<string, unknown> = {};
  const taken: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(memory)) {
    const name = MOVED.find((known) => known === camelCase(key));
    if (name === undefined) kept[key] = value;
    else if (isPlainObject(scheduler) && scheduler[name] !== undefined) {
      const message = `is written in scheduler.${name} as well; leave one out`;
      problems.push({ at: ['worker', 'memory', key], message, aboutKey: true });
    } else taken[name] = isPlainObject(value) ? camelKeys(value) : value;
  }
  if (Object.keys(kept).length === Object.keys(memory).length || !isPlainObject(scheduler)) {
    return root;
  }
  return {
    ...root,
    worker: { ...worker, memory: kept },
    scheduler: { ...scheduler, ...taken },
  };
}

function camelKeys(written: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [camelCase(key), value]));
}

function policy(item: unknown, index: number, problems: Problem[]): unknown {
  const at = ['scheduler', 'activeMemoryManager', 'policies', index];
  const named = isPlainObject(item) && 'class' in item && !isExtension(item);
  const entry = named ? daskPolicy(item, at, problems) : item;
  const use = isPlainObject(entry) ? entry['use'] : entry;
  // The plugin refuses what is no name, such as the class itself in code, when it loads it.
  if (typeof use === 'string' && RETIRE_WORKER.test(use)) {
    const message = `must not name ${use}: retireWorkers adds it, one for each worker that leaves, and it leaves by itself; remove the entry`;
    problems.push({ at, message });
  }
  return entry;
}

const RETIRE_WORKER = /^(retire-worker|distributed\.active_memory_manager\.RetireWorker)$/;

function daskPolicy(
  item: Readonly<Record<string, unknown>>,
  at: readonly Segment[],
  problems: Problem[],
): object {
  if ('use' in item || 'options' in item) {
    problems.push({
      at: [...at, 'class'],
      message: 'cannot stand next to use or options; with class the options are inline',
      aboutKey: true,
    });
  }
  const { class: use, ...options } = item;
  return { use, options };
}

/** `unmanaged_old` is unmanagedOld; older releases said managed_in_memory and managed_spilled. */
function daskMeasure(name: unknown): unknown {
  if (typeof name !== 'string') return name;
  const words = camelCase(name);
  return { managedInMemory: 'managed', managedSpilled: 'spilled' }[words] ?? words;
}
