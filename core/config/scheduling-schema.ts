import { duration, flag, memory, section, whole } from './schema-parts.ts';

const LATER = 'No effect yet.';

const speculation = section(
  'Speculation',
  `${LATER} Runs that take much longer than others like them are tried elsewhere as well.`,
  {
    enabled: flag('On', LATER, false),
    dry: flag('Only tell', `${LATER} Says what would be run again, and runs nothing.`, false),
    interval: duration('Interval', `${LATER} Between two looks at what runs.`, { default: '5s' }),
    threshold: {
      title: 'Threshold',
      description: `${LATER} Part of the subtasks of a kind that must have finished before.`,
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.75,
    },
    minTaskRuntime: duration('Least run time', `${LATER} A shorter run is never tried twice.`, {
      default: '3s',
    }),
    multiplier: {
      title: 'Multiplier',
      description: `${LATER} How many times the median a run takes before it is tried elsewhere.`,
      type: 'number',
      exclusiveMinimum: 0,
      default: 1.5,
    },
    maxConcurrentRun: whole('Copies', `${LATER} Runs of one subtask at once.`, {
      minimum: 1,
      default: 3,
    }),
  },
);

const autoscale = section(
  'Autoscale',
  `${LATER} Starts workers while subtasks queue up everywhere, and stops idle ones.`,
  {
    enabled: flag('On', LATER, false),
    strategy: {
      title: 'Strategy',
      description: LATER,
      type: 'string',
      default: 'pending-task-backlog',
    },
    schedulerCheckInterval: duration('Interval', `${LATER} Between two looks at the queues.`, {
      default: '1s',
    }),
    schedulerBacklogTimeout: duration('Backlog', `${LATER} Wait after the first new worker.`, {
      default: '20s',
    }),
    sustainedSchedulerBacklogTimeout: duration(
      'Sustained backlog',
      `${LATER} Wait after each further step. Default: as schedulerBacklogTimeout.`,
    ),
    workerIdleTimeout: duration(
      'Idle time',
      `${LATER} A worker that is idle for longer is stopped. Default: twice schedulerBacklogTimeout.`,
    ),
    minWorkers: whole('Fewest workers', LATER, { default: 1 }),
    maxWorkers: whole('Most workers', LATER, { minimum: 1, default: 100 }),
  },
);

/** The section `scheduling`: the configuration of Mars' scheduling service. */
export const SCHEDULING_SCHEMA: object = {
  ...section(
    'Scheduling service',
    "The words of Mars' scheduling service. Its own spelling, subtask_max_retries, works too.",
    {
      preset: {
        title: 'Preset',
        description:
          "mars: the three rules of Mars' scheduling service decide what runs. The same as policies.queuing: mars, policies.ordering: mars and slotWork: 0 of the section scheduler, unless these are written. The section may also be this name alone. Default: none.",
        type: 'string',
        enum: ['mars'],
      },
      subtaskMaxRetries: whole(
        'Retries',
        'How often a task that fails is tried again when its submission does not say. 0: not at all.',
        { default: 0 },
      ),
      subtaskMaxReschedules: whole(
        'Reschedules',
        'How often a task whose worker died is placed again, on workers that it has not been on if there are others. Takes the place of scheduler.allowedFailures.',
      ),
      subtaskCancelTimeout: duration(
        'Patience with cancelled tasks',
        'A task that goes on for longer after it was cancelled loses its thread. Takes the place of worker.killGrace.',
      ),
      enableKillSlot: flag(
        'End threads of cancelled tasks',
        'Otherwise a cancelled task that does not look at its signal runs to its end, as with worker.killGrace: inf.',
        true,
      ),
      memQuotaSize: memory(
        'Memory quota',
        'What the tasks that run on a worker may be expected to use together, of its memory limit. For worker.memoryAdmission: quota.',
        { default: '80%' },
      ),
      memHardLimit: memory(
        'Hard limit',
        'Beyond this use of the memory limit no task begins beside others. For worker.memoryAdmission: quota.',
        { default: '95%' },
      ),
      submitPeriod: duration('Submit period', `${LATER} Tasks are sent as soon as they can run.`, {
        default: 0,
      }),
      dataPrepareTimeout: duration(
        'Patience with inputs',
        `${LATER} Inputs are fetched until no worker has them.`,
        { default: '10 minutes' },
      ),
      speculation,
      autoscale,
    },
  ),
  // A mere name is that of a preset.
  type: ['object', 'string'],
};
