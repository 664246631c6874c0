import { MEMORY_MEASURES } from '../api/index.ts';
import {
  bytes,
  choice,
  duration,
  entry,
  flag,
  fraction,
  list,
  section,
  type Setting,
  withoutSettings,
} from './settings.ts';

// Sections of the configuration that are the options of a plugin of our own.

const measure = (description: string) =>
  choice('Measure of memory', description, MEMORY_MEASURES, { default: 'optimistic' });

/** The section `scheduler.activeMemoryManager`. */
export const ACTIVE_MEMORY_MANAGER_SCHEMA = section(
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

/** The section `scheduler.rebalance`. */
export const REBALANCE_SCHEMA = section(
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

/** The section `scheduler.workStealing`. */
export const WORK_STEALING_SCHEMA = section(
  'Work stealing',
  'Tasks that have not begun go from workers with a long queue to idle ones.',
  {
    start: flag(
      'Steal from the start',
      'Otherwise on request: work-stealing.start, work-stealing.runOnce.',
      true,
    ),
    interval: duration('Time between rounds', 'Pause between two rounds.', {
      default: '100 ms',
      minimum: 1,
    }),
    mode: choice(
      'Rules',
      'Another way to fill the slot stealing of the policies. eager: dask; calm: calm, with the horizon below.',
      ['eager', 'calm'],
    ),
    horizon: duration(
      'Horizon',
      'With mode calm a worker steals when it has less work than this for each of its threads.',
      { default: '500 ms' },
    ),
    spare: list(
      'Spared prefixes',
      'Tasks of these prefixes stay where they are; so do those that are configured to take 1 ms.',
      { title: 'Prefix', type: 'string' } as Setting<string>,
      ['rechunk-split', 'split-shuffle', 'split-taskshuffle', 'split-stage'],
    ),
  },
);

/** The section `scheduler.coordination`. */
export const COORDINATION_SCHEMA = section(
  'Coordination',
  'Variables, queues, locks, semaphores, events and published data sets for clients.',
  {
    enabled: flag('Offer it', 'Otherwise the calls of clients fail.', true),
    leaseTimeout: duration(
      'Life of a lease',
      'Time after which a lock or lease that its holder has not renewed is given to the next waiting client.',
      { default: '30s', minimum: 10 },
    ),
    memoryLimit: bytes(
      'Memory',
      'What values, names and waiting calls may occupy on the scheduler.',
      { default: '256 MiB' },
    ),
  },
);

/** Options of the plugin `amm`. `rebalance`: what `amm.rebalance` does where the call does not say. */
export const AMM_OPTIONS = {
  properties: { ...ACTIVE_MEMORY_MANAGER_SCHEMA.properties, rebalance: REBALANCE_SCHEMA },
};

/** Options of the plugin `work-stealing`. The other settings say which policy is in the slot `stealing`. */
export const WORK_STEALING_OPTIONS = withoutSettings(WORK_STEALING_SCHEMA, 'mode', 'horizon');

/** Options of the plugin `coordination`, which is not loaded where it is not enabled. */
export const COORDINATION_OPTIONS = withoutSettings(COORDINATION_SCHEMA, 'enabled');
