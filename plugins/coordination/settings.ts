/** The section `scheduler.coordination` of the configuration. */
import {
  bytes,
  type Checked,
  type ConfigPart,
  duration,
  flag,
  optionsOf,
  section,
  withoutSettings,
} from '../../core/shared/settings.ts';

const COORDINATION_SCHEMA = section(
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

/** Options of the plugin, which is not loaded where it is not enabled. */
export const COORDINATION_OPTIONS = withoutSettings(COORDINATION_SCHEMA, 'enabled');

/** The settings of coordination. */
export const coordinationPart = {
  scheduler: { coordination: COORDINATION_SCHEMA },
  plugin: (scheduler) => {
    const settings = scheduler['coordination'] as Checked<typeof COORDINATION_SCHEMA>;
    if (!settings.enabled) return undefined;
    const options = optionsOf(COORDINATION_OPTIONS, settings);
    return { use: 'coordination', section: 'coordination', options };
  },
} as const satisfies ConfigPart;
