import type { SlotName } from '../../api/policies.ts';
import { entry, perSlot, plugins, preload } from './entry-schema.ts';
import {
  ACTIVE_MEMORY_MANAGER_SCHEMA,
  REBALANCE_SCHEMA,
  RECENT_TO_OLD_SCHEMA,
} from './memory-schema.ts';
import {
  bytes,
  choice,
  duration,
  flag,
  list,
  section,
  type Setting,
  table,
  text,
  whole,
} from './schema-parts.ts';

const SLOTS = {
  workerSelection: ['Which worker computes a task', 'worker selection', 'earliest-start'],
  queuing: ['Which tasks are held back on the scheduler', 'queuing', 'root-ish'],
  ordering: ['In which order the tasks of a graph run', 'ordering', 'depth-first'],
  fairness: ['In which order the work of several clients runs', 'fairness', 'fifo'],
  stealing: ['Which tasks move from busy workers to idle ones', 'stealing', 'dask'],
} as const satisfies Record<SlotName, readonly [title: string, what: string, builtin: string]>;

const policies = perSlot(
  'Policies',
  'Who answers the questions of the kernel. One provider for each slot.',
  (slot) => {
    const [title, what, builtin] = SLOTS[slot];
    return entry(`${what} policy`, { title, description: `Default: ${builtin}.` });
  },
);

const noShadow = {
  title: 'No shadow',
  description: 'The slot stealing has no shadows: its rounds cannot be compared yet.',
  not: {},
};

const shadows = perSlot(
  'Shadows',
  'Policies that decide nothing: asked the same questions, their answers are compared.',
  (slot) => {
    const [title, what] = SLOTS[slot];
    if (slot === 'stealing') return noShadow;
    return entry(`${what} policy`, { title, description: 'Default: none.' });
  },
);

const clientPolicies = perSlot(
  'Policies for clients',
  'Policies that clients may put in charge or into the shadow of a slot, by name.',
  (slot) => {
    const values = entry(`${SLOTS[slot][1]} policy`);
    const text = 'Entries by the names that clients give. Default: none.';
    return table(`For the slot ${slot}`, text, values);
  },
);

const workStealing = section(
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

const coordination = section(
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

const limits = section('Limits', 'What one peer may take of the scheduler and of the workers.', {
  scattered: bytes(
    'Scattered data',
    'What each client may have put on workers. inf: what they have space for.',
    { default: 'inf', infinite: true },
  ),
  graph: bytes('Graphs under way', 'What the parts of a graph of each client may occupy.', {
    default: '4 GiB',
  }),
  events: bytes(
    'Events',
    'What the log of events remembers. The topic that occupies most forgets first.',
    { default: '64 MiB' },
  ),
});

/** With keys, which processes of the same user find. */
export const DEFAULT_ADDRESS = 'tls://127.0.0.1:8786';

/** The section `scheduler`. */
export const SCHEDULER_SCHEMA = section('Scheduler', 'What a scheduler does, and by which rules.', {
  address: text(
    'Address to listen on',
    'scheme://host:port; port 0 chooses a free one. The scheme names the transport: tls asks for keys, tcp does not.',
    { pattern: '^[a-z][a-z0-9+.-]*://', default: DEFAULT_ADDRESS },
  ),
  transport: entry('transport', {
    title: 'Transport',
    description: 'Needed only for a transport that is not built in, or for its options.',
  }),
  validate: flag('Check all invariants', 'After each stimulus. Slow; for tests.', false),
  allowedFailures: whole(
    'Allowed failures',
    'Unexpected deaths of workers under one task that are forgiven.',
    { default: 3 },
  ),
  bandwidth: bytes('Bandwidth', 'Bytes per second between two workers until they are measured.', {
    default: '100 MB',
    minimum: 1,
  }),
  unknownTaskDuration: duration(
    'Duration of unknown tasks',
    'What a task is expected to take before one like it has run.',
    { default: '500 ms' },
  ),
  defaultTaskDurations: table(
    'Known durations',
    'Expected durations by task prefix, before the first task of it has run.',
    duration('Duration', 'What a task of this prefix takes.'),
    { default: {} },
  ),
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
  transitionLogLength: whole('Length of the transition log', 'Transitions that story remembers.', {
    maximum: 10_000_000,
    default: 1000,
  }),
  eventLogLength: whole('Length of the log of events', 'Events that each topic remembers.', {
    maximum: 10_000_000,
    default: 1000,
  }),
  erredTaskLogLength: whole(
    'Length of the log of failures',
    'Failed tasks that are remembered for people.',
    { maximum: 10_000, default: 100 },
  ),
  transitionCounterMax: whole(
    'Most transitions',
    'For tests: number of transitions after which the scheduler closes. Default: never.',
    { minimum: 1 },
  ),
  decisionLogLength: whole(
    'Length of the decision log',
    'Decisions that why remembers, with their candidates. 0: none, at no cost.',
    { maximum: 10_000_000, default: 0 },
  ),
  policies,
  shadows,
  clientPolicies,
  activeMemoryManager: ACTIVE_MEMORY_MANAGER_SCHEMA,
  rebalance: REBALANCE_SCHEMA,
  recentToOldTime: RECENT_TO_OLD_SCHEMA,
  workStealing,
  coordination,
  limits,
  plugins: plugins('Plugins', 'plugin', 'scheduler'),
  preload: preload('Preloaded modules', 'scheduler'),
});
