import { plugins, preload } from './entry-schema.ts';
import {
  bytes,
  choice,
  duration,
  flag,
  fraction,
  memory,
  section,
  type Setting,
  table,
  text,
  whole,
} from './schema-parts.ts';

/** A setting that may also be `false`: there is none. */
const orFalse = <Value, Input, IsComplete extends boolean>(
  setting: Setting<Value, Input, IsComplete> & { readonly type?: string | readonly string[] },
) =>
  ({ ...setting, type: [setting.type, 'boolean'].flat() }) as Setting<
    Value,
    Input | false,
    IsComplete
  >;

const threshold = (title: string, text: string, byDefault: number) =>
  orFalse(fraction(title, `${text} A part of the memory limit; 0 or false: never.`, byDefault));

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
  resources: table(
    'Resources',
    'What the worker offers to tasks that ask for it, by name.',
    { title: 'Amount', type: 'number', minimum: 0 } as Setting<number>,
    { default: {} },
  ),
  memoryLimit: bytes('Memory limit', 'What the worker may use; 0: unlimited.', { default: 0 }),
  memory: workerMemory,
  memoryAdmission: choice(
    'Admission by memory',
    'thresholds: tasks begin until worker.memory.pause is reached. quota: by what they are expected to use, as in Mars, with scheduling.memQuotaSize and memHardLimit; pause does not act then.',
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
    { default: '5s', infinite: true },
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
