import type { SlotName } from '../../api/policies.ts';
import { entry, plugins, preload } from './entry-schema.ts';
import {
  ACTIVE_MEMORY_MANAGER_SCHEMA,
  REBALANCE_SCHEMA,
  RECENT_TO_OLD_SCHEMA,
} from './memory-schema.ts';
import { bytes, duration } from './schema-parts.ts';

const SLOTS = {
  workerSelection: ['Which worker computes a task', 'worker selection', 'earliest-start'],
  queuing: ['Which tasks are held back on the scheduler', 'queuing', 'root-ish'],
  ordering: ['In which order the tasks of a graph run', 'ordering', 'depth-first'],
  fairness: ['In which order the work of several clients runs', 'fairness', 'fifo'],
  stealing: ['Which tasks move from busy workers to idle ones', 'stealing', 'dask'],
} as const satisfies Record<SlotName, readonly [title: string, what: string, builtin: string]>;

/** One entry for each slot. */
const slots = (title: string, description: string, hasDefaults: boolean) => ({
  title,
  description,
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: Object.fromEntries(
    Object.entries(SLOTS).map(([slot, [question, what, builtin]]) => [
      slot,
      entry(
        `${what} policy`,
        {},
        {
          title: question,
          description: hasDefaults ? `Default: ${builtin}.` : 'Default: none.',
        },
      ),
    ]),
  ),
});

const policies = slots(
  'Policies',
  'Who answers the questions of the kernel. One provider for each slot.',
  true,
);

const shadowsOfAll = slots(
  'Shadows',
  'Policies that decide nothing: asked the same questions, their answers are compared.',
  false,
);

const shadows = {
  ...shadowsOfAll,
  properties: {
    ...shadowsOfAll.properties,
    stealing: {
      title: 'No shadow',
      description: 'The slot stealing has no shadows: its rounds cannot be compared yet.',
      not: {},
    },
  },
};

const clientPolicies = {
  title: 'Policies for clients',
  description: 'Policies that clients may put in charge or into the shadow of a slot, by name.',
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: Object.fromEntries(
    Object.entries(SLOTS).map(([slot, [, what]]) => [
      slot,
      {
        title: `For the slot ${slot}`,
        description: 'Entries by the names that clients give. Default: none.',
        type: 'object',
        additionalProperties: entry(`${what} policy`),
      },
    ]),
  ),
};

const workStealing = {
  title: 'Work stealing',
  description: 'Tasks that have not begun go from workers with a long queue to idle ones.',
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: {
    start: {
      title: 'Steal from the start',
      description: 'Otherwise on request: work-stealing.start, work-stealing.runOnce.',
      type: 'boolean',
      default: true,
    },
    interval: duration('Time between rounds', 'Pause between two rounds.', {
      default: '100 ms',
      minimum: 1,
    }),
    mode: {
      title: 'Rules',
      description:
        'Another way to fill the slot stealing of the policies. eager: dask; calm: calm, with the horizon below.',
      type: 'string',
      enum: ['eager', 'calm'],
    },
    horizon: duration(
      'Horizon',
      'With mode calm a worker steals when it has less work than this for each of its threads.',
      { default: '500 ms' },
    ),
    spare: {
      title: 'Spared prefixes',
      description:
        'Tasks of these prefixes stay where they are; so do those that are configured to take 1 ms.',
      type: 'array',
      items: { title: 'Prefix', type: 'string' },
      default: ['rechunk-split', 'split-shuffle', 'split-taskshuffle', 'split-stage'],
    },
  },
};

const coordination = {
  title: 'Coordination',
  description: 'Variables, queues, locks, semaphores, events and published data sets for clients.',
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: {
    enabled: {
      title: 'Offer it',
      description: 'Otherwise the calls of clients fail.',
      type: 'boolean',
      default: true,
    },
    leaseTimeout: duration(
      'Life of a lease',
      'Time after which a lock or lease that its holder has not renewed is given to the next waiting client.',
      { default: '30s', minimum: 100 },
    ),
    memoryLimit: bytes(
      'Memory',
      'What values, names and waiting calls may occupy on the scheduler.',
      { default: '256 MiB' },
    ),
  },
};

/** The section `scheduler`. */
export const SCHEDULER_SCHEMA = {
  title: 'Scheduler',
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: {
    address: {
      title: 'Address to listen on',
      description: 'scheme://host:port; port 0 chooses a free one. The scheme names the transport.',
      type: 'string',
      pattern: '^[a-z][a-z0-9+.-]*://',
      default: 'tcp://127.0.0.1:8786',
    },
    transport: entry(
      'transport',
      {},
      {
        title: 'Transport',
        description: 'Needed only for a transport that is not built in, or for its options.',
      },
    ),
    validate: {
      title: 'Check all invariants',
      description: 'After each stimulus. Slow; for tests.',
      type: 'boolean',
      default: false,
    },
    allowedFailures: {
      title: 'Allowed failures',
      description: 'Unexpected deaths of workers under one task that are forgiven.',
      type: 'integer',
      minimum: 0,
      default: 3,
    },
    bandwidth: bytes('Bandwidth', 'Bytes per second between two workers until they are measured.', {
      default: '100 MB',
      minimum: 1,
    }),
    unknownTaskDuration: duration(
      'Duration of unknown tasks',
      'What a task is expected to take before one like it has run.',
      { default: '500 ms' },
    ),
    defaultTaskDurations: {
      title: 'Known durations',
      description: 'Expected durations by task prefix, before the first task of it has run.',
      type: 'object',
      default: {},
      additionalProperties: duration('Duration', 'What a task of this prefix takes.'),
    },
    slotWork: duration(
      'Work of a slot',
      'Root-ish tasks of less work and with small results share a slot of a worker, which then need not wait for each. 0: each task takes a slot.',
      { default: '4 ms' },
    ),
    sendAlong: bytes(
      'Results that are sent along',
      'Largest result in bytes that is sent to waiting clients with the report that it is in memory, so that they need not fetch it. 0: none.',
      { default: '1 KiB' },
    ),
    defaultDataSize: bytes(
      'Size of unknown results',
      'What a result is taken for until its size is known.',
      {
        default: '1 KiB',
      },
    ),
    workerTtl: duration(
      'Time to live of workers',
      'A worker that is silent for longer is removed. inf: never.',
      {
        default: '5 minutes',
        minimum: 1,
        infinite: true,
      },
    ),
    noWorkersTimeout: duration(
      'Patience without workers',
      'Tasks that no worker can take fail after this. inf: they wait.',
      { default: 'inf', infinite: true },
    ),
    idleTimeout: duration(
      'Patience without work',
      'Idle time after which the scheduler closes. inf: never.',
      { default: 'inf', infinite: true },
    ),
    clientGrace: duration(
      'Patience with lost clients',
      'How long the results that a client wants are kept when its connection breaks and it may reconnect.',
      { default: '60s' },
    ),
    transitionLogLength: {
      title: 'Length of the transition log',
      description: 'Transitions that story remembers.',
      type: 'integer',
      minimum: 0,
      maximum: 10_000_000,
      default: 1000,
    },
    eventLogLength: {
      title: 'Length of the log of events',
      description: 'Events that each topic remembers.',
      type: 'integer',
      minimum: 0,
      maximum: 10_000_000,
      default: 1000,
    },
    erredTaskLogLength: {
      title: 'Length of the log of failures',
      description: 'Failed tasks that are remembered for people.',
      type: 'integer',
      minimum: 0,
      maximum: 10_000,
      default: 100,
    },
    transitionCounterMax: {
      title: 'Most transitions',
      description:
        'For tests: number of transitions after which the scheduler closes. Default: never.',
      type: 'integer',
      minimum: 1,
    },
    decisionLogLength: {
      title: 'Length of the decision log',
      description: 'Decisions that why remembers, with their candidates. 0: none, at no cost.',
      type: 'integer',
      minimum: 0,
      maximum: 10_000_000,
      default: 0,
    },
    policies,
    shadows,
    clientPolicies,
    activeMemoryManager: ACTIVE_MEMORY_MANAGER_SCHEMA,
    rebalance: REBALANCE_SCHEMA,
    recentToOldTime: RECENT_TO_OLD_SCHEMA,
    workStealing,
    coordination,
    plugins: plugins('Plugins', 'plugin', 'scheduler'),
    preload: preload('Preloaded modules', 'scheduler'),
  },
};
