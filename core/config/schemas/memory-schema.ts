import { MEMORY_MEASURES } from '../../state/memory.ts';
import { entry } from './entry-schema.ts';
import { choice, duration, flag, fraction, list, section } from './schema-parts.ts';

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

/** `scheduler.recentToOldTime`. */
export const RECENT_TO_OLD_SCHEMA = duration(
  'Age of old memory',
  'Time after which unmanaged memory of a worker counts as old, and no longer as a short peak.',
  { default: '30s' },
);
