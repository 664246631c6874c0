/** The section `scheduler.workStealing` of the configuration, and what it means for others. */
import type { UseEntry } from '../../core/api/index.ts';
import {
  type Checked,
  choice,
  type ConfigPart,
  duration,
  flag,
  list,
  optionsOf,
  section,
  type Sections,
  type Setting,
  withoutSettings,
} from '../../core/shared/settings.ts';

const WORK_STEALING_SCHEMA = section(
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

/** Options of the plugin. The other settings say which policy is in the slot `stealing`. */
export const WORK_STEALING_OPTIONS = withoutSettings(WORK_STEALING_SCHEMA, 'mode', 'horizon');

const SETTINGS = { workStealing: WORK_STEALING_SCHEMA };

/** The settings of work stealing. */
export const workStealingPart = {
  scheduler: SETTINGS,
  presets: { dask: { workStealing: { interval: '1s' } } },
  problems: ({ scheduler = {} }) => {
    const { stealing } = scheduler['policies'] as { readonly stealing?: UseEntry };
    if (stealing === undefined || settingsIn({ scheduler }).mode === undefined) return [];
    const message = 'fills the slot that scheduler.policies.stealing fills as well; leave one out';
    return [{ at: ['scheduler', 'workStealing', 'mode'], message, aboutKey: true }];
  },
  apply: (config) => {
    const { mode, horizon } = settingsIn(config);
    if (mode === undefined) return config;
    const stealing: UseEntry =
      mode === 'calm' ? { use: 'calm', options: { horizonMs: horizon } } : { use: 'dask' };
    const policies = { ...(config['scheduler']?.['policies'] as object), stealing };
    return { ...config, scheduler: { ...config['scheduler'], policies } };
  },
  plugin: (scheduler) => ({
    use: 'work-stealing',
    section: 'workStealing',
    options: optionsOf(WORK_STEALING_OPTIONS, settingsIn({ scheduler })),
  }),
} as const satisfies ConfigPart;

function settingsIn({ scheduler = {} }: Sections): Checked<typeof WORK_STEALING_SCHEMA> {
  return scheduler['workStealing'] as Checked<typeof WORK_STEALING_SCHEMA>;
}
