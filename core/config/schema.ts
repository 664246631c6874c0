import type { UseEntry } from '../api/plugin.ts';
import { BUILTIN_POLICIES, SLOT_NAMES, type SlotName } from '../api/policies.ts';
import type { RuleEntry } from '../api/rules.ts';
import type { StoreSpec } from '../messages/protocol.ts';
import { RESULT_STORE } from '../shared/schema.ts';
import {
  bytes,
  type Checked,
  choice,
  type ConfigPart,
  duration,
  entry,
  flag,
  fraction,
  list,
  memory,
  section,
  type Setting,
  type Settings,
  table,
  text,
  whole,
  type Written,
} from '../shared/settings.ts';

const onError = (owner: string) =>
  choice(
    'When a hook throws',
    `log: continue; disable: detach the plugin; crash: close the ${owner}.`,
    ['log', 'disable', 'crash'],
    { default: 'log' },
  );

/** The treatment of a plugin whose hook throws. */
export type OnError = Checked<ReturnType<typeof onError>>;

/** A plugin as a configuration names it. */
export interface PluginEntry extends UseEntry {
  readonly onError: OnError;
}

/**
 * Plugins: entries that say what happens when a hook throws.
 * @param what - what they are called in messages
 * @param owner - what `crash` closes
 */
export const plugins = (title: string, what: string, owner: string) =>
  list(
    title,
    'In the order in which they are set up and their hooks run.',
    entry<PluginEntry>(what, {}, { onError: onError(owner) }),
  );

/** Modules with `setup` and `close`. */
export const preload = (title: string, owner: string) =>
  list(
    title,
    `Modules whose setup is called before anything of the ${owner} is there, and whose close after it has closed.`,
    entry('module'),
  );

/** One setting for each policy slot, and others. */
const perSlot = <Value, Input, Others extends Settings>(
  title: string,
  description: string,
  ofSlot: (slot: SlotName) => Setting<Value, Input, false>,
  others: Others,
) => {
  const of = Object.fromEntries(SLOT_NAMES.map((slot) => [slot, ofSlot(slot)]));
  return section(title, description, {
    ...(of as Readonly<Record<SlotName, Setting<Value, Input, false>>>),
    ...others,
  });
};

const RECENT_TO_OLD_SCHEMA = duration(
  'Age of old memory',
  'Time after which unmanaged memory of a worker counts as old, and no longer as a short peak.',
  { default: '30s' },
);

/** The policies that decide when a configuration names none, and when a policy fails. */
export const DEFAULT_POLICIES = {
  workerSelection: BUILTIN_POLICIES.workerSelection[0],
  queuing: BUILTIN_POLICIES.queuing[0],
  ordering: BUILTIN_POLICIES.ordering[0],
  fairness: BUILTIN_POLICIES.fairness[0],
  stealing: BUILTIN_POLICIES.stealing[0],
} as const satisfies Record<SlotName, string>;

/** Policies and settings that belong together, by the name that stands in the place of the policies: `policies: dask`. */
export const PRESETS = {
  /** The rules and, with what the parts add, the intervals of Dask's scheduler, release 2026.8.0. */
  dask: {
    policies: {
      workerSelection: { use: 'earliest-start', options: { resources: 'offered' } },
      queuing: { use: 'root-ish' },
      ordering: { use: 'dask' },
      fairness: { use: 'fifo' },
      stealing: { use: 'dask' },
    },
    slotWork: 0,
    bandwidth: '100 MB',
  },
} as const;

export type PresetName = keyof typeof PRESETS;

const SLOTS = {
  workerSelection: ['Which worker computes a task', 'worker selection'],
  queuing: ['Which tasks are held back on the scheduler', 'queuing'],
  ordering: ['In which order the tasks of a graph run', 'ordering'],
  fairness: ['In which order the work of several clients runs', 'fairness'],
  stealing: ['Which tasks move from busy workers to idle ones', 'stealing'],
} as const satisfies Record<SlotName, readonly [title: string, what: string]>;

const weight = {
  title: 'Weight',
  description: 'Of its scores, beside 1 for those of the policy.',
  ...{ type: 'number', minimum: 0, default: 1 },
};

const ownPolicies = perSlot(
  'Policies',
  'Who answers the questions of the kernel. One provider for each slot, and any number of rules.',
  (slot) => {
    const [title, what] = SLOTS[slot];
    return entry(`${what} policy`, { title, description: `Default: ${DEFAULT_POLICIES[slot]}.` });
  },
  {
    rules: list(
      'Rules',
      'Where tasks may run, which places are better, which tasks wait. In the order in which they are asked.',
      entry<RuleEntry>('rule', {}, { weight }),
    ),
  },
);

/** A name is written out before anything is checked. */
const policies = { ...ownPolicies, type: ['object', 'string'] } as unknown as Setting<
  Checked<typeof ownPolicies>,
  Written<typeof ownPolicies> | PresetName,
  true
>;

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
  {},
);

const clientPolicies = perSlot(
  'Policies for clients',
  'Policies that clients may put in charge or into the shadow of a slot, by name.',
  (slot) => {
    const values = entry(`${SLOTS[slot][1]} policy`);
    const text = 'Entries by the names that clients give. Default: none.';
    return table(`For the slot ${slot}`, text, values);
  },
  {},
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
  retries: whole(
    'Retries',
    'How often a task that fails is tried again when its submission does not say.',
    { default: 0 },
  ),
  avoidUsedWorkers: flag(
    'Avoid used workers',
    'A task whose worker died is placed on one that it has not been on, if there is one.',
    false,
  ),
  bandwidth: bytes(
    'Bandwidth',
    'Bytes per second between two workers, which measurements move slowly. Default: 100 MB, until the first measurement.',
    { minimum: 1 },
  ),
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
  knowledge: text(
    'File of knowledge',
    'Durations of tasks and sizes of results, by task prefix: read at the start, and kept up to date for the next one. Default: none.',
    { minLength: 1 },
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
  slowHook: duration(
    'Budget of a hook',
    'A call of a plugin or policy that takes longer is named in the log, once a minute.',
    { default: '100 ms', minimum: 1, infinite: true },
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
  recentToOldTime: RECENT_TO_OLD_SCHEMA,
  limits,
  plugins: plugins('Plugins', 'plugin', 'scheduler'),
  preload: preload('Preloaded modules', 'scheduler'),
});

/** A setting that may also be `false`, which means that there is none. */
const orFalse = <Value, Input, IsComplete extends boolean>(
  setting: Setting<Value, Input, IsComplete>,
  none: number | string,
) => ({ ...setting, whenFalse: none }) as Setting<Value, Input | false, IsComplete>;

const threshold = (title: string, text: string, byDefault: number) =>
  orFalse(fraction(title, `${text} A part of the memory limit; 0 or false: never.`, byDefault), 0);

const workerMemory = section(
  'Memory of workers',
  'How a worker keeps its memory limit. Of no effect without one.',
  {
    target: threshold('Target', 'Results beyond it are spilled, least recently used first.', 0.6),
    spill: threshold(
      'Spill',
      'When all that the worker occupies is beyond it, results are spilled until it is below the target.',
      0.7,
    ),
    pause: threshold('Pause', 'Beyond it no further task begins.', 0.8),
    terminate: threshold(
      'Terminate',
      'Beyond it a worker process gives up, before the system kills it.',
      0.95,
    ),
    transfer: threshold('Transfers', 'What transfers under way may fill.', 0.1),
    quota: memory(
      'Quota',
      'What running tasks may be expected to use together. Default: no task is admitted by that.',
    ),
    hardLimit: memory(
      'Hard limit',
      'With a quota: when all that the worker occupies is beyond it, no task begins beside others. Default: none.',
    ),
    maxSpill: orFalse(
      bytes('Bytes on disk', 'What may be spilled at once. inf or false: no such limit.', {
        default: 'inf',
        infinite: true,
      }),
      'inf',
    ),
    spillFolder: text(
      'Folder for spilled results',
      'Parent of the folders that workers create. Default: the temporary folder of the system.',
      { minLength: 1 },
    ),
    monitorInterval: duration('Interval of the monitor', 'Pause between two looks at the memory.', {
      default: '100 ms',
      minimum: 1,
    }),
  },
);

/** The section `worker`. */
export const WORKER_SCHEMA = section('Workers', 'Of the workers that are started with this file.', {
  threads: whole('Threads', 'Tasks that run at once. Default: the processors of the machine.', {
    minimum: 1,
  }),
  executor: entry('executor', {
    title: 'Executor',
    description:
      'What runs the tasks: threads, inline (the thread of the worker), or a module. Default: threads.',
  }),
  resultStore: {
    title: 'Store of results',
    description:
      'Where the clients of tasks, and those of a local cluster, keep results: a folder, { folder, maxBytes }, { s3 }, or { use, options } for a module. Default: none.',
    ...RESULT_STORE,
  } as object as Setting<string | StoreSpec, string | StoreSpec, false>,
  resources: table(
    'Resources',
    'What the worker offers to tasks that ask for it, by name.',
    { title: 'Amount', type: 'number', minimum: 0 } as Setting<number>,
    { default: {} },
  ),
  memoryLimit: bytes('Memory limit', 'What the worker may use; 0: unlimited.', {
    default: 0,
    advised: {
      minimum: 80e6,
      advice:
        'below 80 MB, because a worker process occupies about 60 MB itself; raise it, or write 0 for no limit',
    },
  }),
  memory: workerMemory,
  memoryAdmission: choice(
    'Admission by memory',
    'thresholds: tasks begin until worker.memory.pause is reached. quota: by what they are expected to use; pause does not act then.',
    ['thresholds', 'quota'],
    { default: 'thresholds' },
  ),
  ready: choice(
    'Order of what is ready',
    'priority: as the scheduler says. lifo: what became ready last runs first.',
    ['priority', 'lifo'],
    { default: 'priority' },
  ),
  killGrace: duration(
    'Grace for aborted tasks',
    'How long an aborted task may continue before its thread is terminated. inf: for ever.',
    { default: '500ms', infinite: true },
  ),
  nanny: flag(
    'Nanny',
    'Another process takes the place of a worker process that dies or is stuck.',
    true,
  ),
  stuckAfter: duration(
    'Patience with silent processes',
    'Time without a sign of life after which the nanny replaces a worker process. inf: never.',
    { default: '30s', minimum: 1, infinite: true },
  ),
  onSchedulerLost: choice(
    'When the scheduler is gone',
    'close: the worker says so and closes. reconnect: it keeps its results and tries to come back.',
    ['close', 'reconnect'],
    { default: 'close' },
  ),
  reconnectTimeout: duration(
    'Time to come back',
    'How long a worker that reconnects tries to before it closes. inf: for ever.',
    { default: '60s', infinite: true },
  ),
  schedulerTtl: duration(
    'Time to live of the scheduler',
    'Time without an answer of the scheduler after which it counts as gone. inf: never.',
    { default: '5m', minimum: 1000, infinite: true },
  ),
  lifetime: duration(
    'Lifetime',
    'After this a worker gives its results away and closes. inf: it has no end.',
    { default: 'inf', minimum: 1, infinite: true },
  ),
  lifetimeStagger: duration(
    'Stagger of lifetimes',
    'Each worker lives up to so much shorter or longer, so that not all go at once.',
    { default: 0 },
  ),
  lifetimeRestart: flag(
    'Restart after the lifetime',
    'The nanny starts another process in its place. Otherwise it is gone.',
    false,
  ),
  plugins: plugins('Plugins of workers', 'worker plugin', 'worker'),
  preload: preload('Modules preloaded by workers', 'worker'),
  nannyPlugins: plugins('Plugins of nannies', 'nanny plugin', 'nanny'),
  nannyPreload: preload('Modules preloaded by nannies', 'nanny'),
  allowModules: {
    title: 'Modules that clients may name',
    description:
      'Folders and files, which start with . or /, or packages, of tasks and of plugins that clients register; * permits every file. Default: the project of the folder in which the worker is started.',
    type: 'array',
    items: { type: 'string', minLength: 1 },
  } as object as Setting<readonly string[], readonly string[], false>,
  env: {
    title: 'Environment of tasks',
    description:
      'Variables that the worker process keeps, besides those that Node and Yardmaster need. Default: all.',
    type: 'array',
    items: { type: 'string', minLength: 1 },
  } as object as Setting<readonly string[], readonly string[], false>,
  retireTimeout: duration(
    'Time to retire',
    'How long a worker that is asked to end may give its results away before it closes.',
    { default: '10s' },
  ),
});

/** The JSON schema of a whole configuration file. */
export interface ConfigSchema {
  readonly properties: Readonly<Record<'scheduler' | 'worker', { readonly properties: Settings }>>;
}

/** The schema of the core, and the sections of what is built in. */
export function configSchema(parts: readonly ConfigPart[]): ConfigSchema {
  const merged = (ofPart: (part: ConfigPart) => Settings | undefined): Settings =>
    Object.fromEntries(parts.flatMap((part) => Object.entries(ofPart(part) ?? {})));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Yardmaster configuration',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { title: 'Schema of this file', type: 'string' },
      scheduler: {
        ...SCHEDULER_SCHEMA,
        properties: { ...SCHEDULER_SCHEMA.properties, ...merged(({ scheduler }) => scheduler) },
      },
      ...merged(({ sections }) => sections),
      worker: WORKER_SCHEMA,
    },
  } as ConfigSchema;
}
