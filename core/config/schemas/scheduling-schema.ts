import {
  type Checked,
  choice,
  duration,
  flag,
  memory,
  section,
  type Setting,
  whole,
  type Written,
} from './schema-parts.ts';

const WORDS = section(
  'Scheduling service',
  "The words of Mars' scheduling service. Its own spelling, subtask_max_retries, works too.",
  {
    preset: choice(
      'Preset',
      "mars: the three rules of Mars' scheduling service decide what runs. The same as policies.queuing: mars, policies.ordering: mars and slotWork: 0 of the section scheduler, unless these are written. The section may also be this name alone. Default: none.",
      ['mars'],
    ),
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
      'Time after which the thread of a cancelled task that continues is terminated. Replaces worker.killGrace.',
    ),
    enableKillSlot: flag(
      'End threads of cancelled tasks',
      'Otherwise a cancelled task that does not look at its signal runs to its end, as with worker.killGrace: inf.',
      true,
    ),
    memQuotaSize: memory(
      'Memory quota',
      'What the tasks that run on a worker may be expected to use together, of its memory limit. For worker.memoryAdmission: quota, which it implies.',
      { default: '80%' },
    ),
    memHardLimit: memory(
      'Hard limit',
      'Beyond this use of the memory limit no task begins beside others. For worker.memoryAdmission: quota, which it implies.',
      { default: '95%' },
    ),
  },
);

/** The section `scheduling`: the configuration of Mars' scheduling service. A name alone is that of a preset. */
export const SCHEDULING_SCHEMA = { ...WORDS, type: ['object', 'string'] } as object as Setting<
  Checked<typeof WORDS>,
  Written<typeof WORDS> | 'mars',
  true
>;
